import { UsageError } from '../../engine/errors.ts';
import { checkEnding, wholeNumber } from '../check-params.ts';
import { MAXIMUM_RANK } from '../als/params.ts';

export const rateNames = ['paper', 'constant', 'bold', 'adagrad'] as const;
export const scheduleNames = ['auto', 'hogwild', 'wavefront', 'tile', 'blocks'] as const;
export const precisionNames = ['auto', 'f32', 'f16'] as const;

/** Parameters of SGD. Rates are in units of the ratings' standard deviation, so that they suit any scale of ratings. */
export interface SgdParams {
  /** k: factors per user and item, 1 to 512. */
  readonly rank: number;
  /** Epochs: each visits every rating once. */
  readonly maxIter: number;
  /** λ of both sides, unless one has its own. It acts at each rating, so a row feels it n_u times, as in ALS. */
  readonly regParam: number;
  readonly regParamUsers?: number;
  readonly regParamItems?: number;
  readonly seed: number;
  /** Whether μ, user and item biases are learnt beside the factors: r_uv ≈ μ + β_u + γ_v + p_uᵀq_v. */
  readonly biases: boolean;
  /** α, the learning rate of the first epoch. */
  readonly learningRate: number;
  /** β of the rate `paper`. */
  readonly decay: number;
  /** How the rate goes on: `paper` α / (1 + β t^1.5), `constant`, `bold` (by the loss), `adagrad` (a rate of each row's own). */
  readonly rate: (typeof rateNames)[number];
  /** Which ratings are visited when, and by whom. */
  readonly schedule: (typeof scheduleNames)[number];
  /** What factors are stored as while a GPU steps them; `auto`: float16 there. A CPU has float32 only. */
  readonly precision: (typeof precisionNames)[number];
  /** Ends after so many epochs without a better validation RMSE, and keeps the best. */
  readonly earlyStop?: number;
  /** Ends once the validation RMSE is at most this. */
  readonly targetRmse?: number;
}

export const sgdDefaults: SgdParams = { rank: 10, maxIter: 20, regParam: 0.1, seed: 0, biases: false, learningRate: 0.08, decay: 0.3, rate: 'paper', schedule: 'auto', precision: 'auto' };

/** λ of users and of items. */
export function lambdasOf({ regParam, regParamUsers = regParam, regParamItems = regParam }: SgdParams): { readonly users: number; readonly items: number } {
  return { users: regParamUsers, items: regParamItems };
}

/** The parameters with defaults filled in; throws UsageError naming parameter and value. */
export function checkSgdParams(given: Partial<SgdParams>): SgdParams {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const params: SgdParams = { ...sgdDefaults, ...set };
  wholeNumber('rank', params.rank, 1, MAXIMUM_RANK);
  wholeNumber('maxIter', params.maxIter, 1, 1_000_000);
  wholeNumber('seed', params.seed, 0, 2 ** 32 - 1);
  for (const name of ['regParam', 'regParamUsers', 'regParamItems', 'decay'] as const) {
    const value = params[name];
    if (value !== undefined && !(Number.isFinite(value) && value >= 0)) throw new UsageError(`${name} must be a number >= 0, got ${value}`);
  }
  if (!(Number.isFinite(params.learningRate) && params.learningRate > 0)) throw new UsageError(`learningRate (α) must be a number > 0, got ${params.learningRate}`);
  if (!rateNames.includes(params.rate)) throw new UsageError(`rate must be ${rateNames.join(', ')}, got ${params.rate}`);
  if (!scheduleNames.includes(params.schedule)) throw new UsageError(`schedule must be ${scheduleNames.join(', ')}, got ${params.schedule}`);
  if (!precisionNames.includes(params.precision)) throw new UsageError(`precision must be ${precisionNames.join(', ')}, got ${params.precision}`);
  if (typeof params.biases !== 'boolean') throw new UsageError(`biases must be true or false, got ${String(params.biases)}`);
  if (given.decay !== undefined && params.rate !== 'paper') throw new UsageError(`decay (β) acts only with rate paper, not with ${params.rate}`, { advice: 'Leave one of them out' });
  if (given.regParam !== undefined && params.regParamUsers !== undefined && params.regParamItems !== undefined) {
    throw new UsageError('regParam does nothing beside regParamUsers and regParamItems', { advice: 'Leave one of them out' });
  }
  checkEnding(params);
  return params;
}
