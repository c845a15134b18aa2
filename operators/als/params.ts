import { UsageError } from '../../engine/errors.ts';
import { checkEnding, wholeNumber } from '../check-params.ts';

/** Parameters of explicit ALS with weighted-λ regularization; names and defaults are Spark ML's where it has them. */
export interface AlsParams {
  /** f: factors per user and item, 1 to 512. */
  readonly rank: number;
  readonly maxIter: number;
  /** λ: multiplied by the number of ratings of the row (ALS-WR). */
  readonly regParam: number;
  readonly seed: number;
  /** How A x = b is solved: exactly (`cholesky`), by f_s steps of conjugate gradients (`cg`), or per row (`auto`). */
  readonly solver: 'auto' | 'cholesky' | 'cg';
  /** f_s of cuMF_ALS, Algorithm 1. */
  readonly cgSteps: number;
  /** Whether μ, user and item biases are learnt beside the factors: r_uv ≈ μ + β_u + γ_v + x_uᵀθ_v. */
  readonly biases: boolean;
  /** Whether all factors are kept >= 0, exactly, by non-negative least squares. Biases are not bounded. Not with solver `cg`. */
  readonly nonnegative: boolean;
  /** What a GPU gathers factors as: float32, float16 with sums in float32, or whichever suits. A CPU computes in float32 and refuses `f16`. */
  readonly precision: 'auto' | 'f32' | 'f16';
  /** Name of the GPU kernel that solves the rows; without it the device chooses. */
  readonly kernel?: string;
  /** Ends after so many iterations without a better validation RMSE, and keeps the best. */
  readonly earlyStop?: number;
  /** Ends once the validation RMSE is at most this. */
  readonly targetRmse?: number;
}

export const alsDefaults: AlsParams = { rank: 10, maxIter: 10, regParam: 0.1, seed: 0, solver: 'auto', cgSteps: 6, biases: false, nonnegative: false, precision: 'auto' };

export const MAXIMUM_RANK = 512;

/** The parameters with defaults filled in; throws UsageError naming parameter and value. */
export function checkAlsParams(given: Partial<AlsParams>): AlsParams {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const params: AlsParams = { ...alsDefaults, ...set };
  wholeNumber('rank', params.rank, 1, MAXIMUM_RANK);
  wholeNumber('maxIter', params.maxIter, 1, 1_000_000);
  wholeNumber('seed', params.seed, 0, 2 ** 32 - 1);
  wholeNumber('cgSteps', params.cgSteps, 1, 1000);
  if (!(Number.isFinite(params.regParam) && params.regParam >= 0)) throw new UsageError(`regParam (λ) must be a number >= 0, got ${params.regParam}`);
  if (!['auto', 'cholesky', 'cg'].includes(params.solver)) throw new UsageError(`solver must be auto, cholesky or cg, got ${params.solver}`);
  if (!['auto', 'f32', 'f16'].includes(params.precision)) throw new UsageError(`precision must be auto, f32 or f16, got ${String(params.precision)}`);
  if (params.kernel !== undefined && (typeof params.kernel !== 'string' || params.kernel === '')) throw new UsageError(`kernel must be the name of a GPU kernel, got ${String(params.kernel)}`);
  for (const name of ['biases', 'nonnegative'] as const) {
    if (typeof params[name] !== 'boolean') throw new UsageError(`${name} must be true or false, got ${String(params[name])}`);
  }
  if (params.nonnegative && params.solver === 'cg') {
    throw new UsageError('solver cg cannot act with nonnegative: conjugate gradients do not keep factors >= 0', { advice: 'Leave the solver at auto, or leave nonnegative out' });
  }
  checkEnding(params);
  return params;
}
