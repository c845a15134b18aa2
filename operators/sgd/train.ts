import { DivergedError } from '../../engine/errors.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-pairs.ts';
import { validationMetric } from '../evaluation/ranking/validation-metric.ts';
import { rankingMetricOf } from '../params/common.ts';
import { leaveRatings } from '../ratings/parts-in-files.ts';
import type { RatingBlock } from '../ratings/ratings.ts';
import type { BoundRun } from '../training/bind-plan.ts';
import { MOST_RESTARTS, runLoop } from '../training/loop.ts';
import { trainingErrors } from '../training/loss.ts';
import { partsOf, factorsOfRows, type ModelFactors, type ModelRows } from '../training/model-rows.ts';
import { planAfterRun } from '../training/planned-training.ts';
import {
  checkpointsOf,
  type Matrices,
  type LoopOptions,
  type LoopResult,
  type Training,
  StoppingRule,
} from '../training/training.ts';
import { bindSgd, type PenaltyNorms, startNorms } from './bind.ts';
import { pairsByPosition, type SgdData } from './data/data.ts';
import { layOut } from './data/layout.ts';
import {
  fromModel,
  modelSides,
  type TrainedFactors,
  fromMatrices,
  toMatrices,
  trainedFactors,
} from './factors.ts';
import { sgdFeatures, type SgdParams, shrinks, steppedLambdas } from './params.ts';
import { scheduleOf } from './plan.ts';
import { bandsLeave } from './schedules/gpu-schedules.ts';

export interface SgdInput {
  readonly data: SgdData;
  /** Pairs of the validation set whose user and item are in the training set, from loadSgdTest. */
  readonly test?: RatingBlock;
  /** Factors to continue from, by position; default: drawn at random. */
  readonly start?: ModelFactors;
}

export interface SgdResult extends Omit<LoopResult<unknown>, 'factors'> {
  readonly sides: ModelRows;
  /** The plan as it was run. */
  readonly plan: PhysicalPlan;
}

export interface TrainSgdOptions extends Pick<
  LoopOptions<Matrices>,
  'copySeconds' | 'checkpoints' | 'fetched'
> {
  /** Devices of the plan that hold factors. */
  readonly devices: readonly DeviceInfo[];
  readonly plan: (devices: readonly DeviceInfo[]) => PhysicalPlan;
  /** Most users over which a ranking metric is measured. */
  readonly rankUsers?: number | undefined;
}

/**
 * An epoch has diverged if its loss exceeds the previous loss by a tenth and also by a thousandth of σ² Nz;
 * smaller increases are the noise of SGD.
 */
const DIVERGED = { relative: 1.1, absolute: 1e-3 } as const;

/**
 * Matrix factorization by parallel stochastic gradient descent (cuMF_SGD). Each epoch updates a copy of the
 * previous epoch's factors. An epoch that diverges is discarded and run again at half the rate, at most three
 * times. (If one column has most of the ratings, the loss sometimes rises that much for any order of blocks.)
 * Throws DivergedError if the fourth attempt diverges too, and DeviceLostError if the last device is lost
 * before any factors were copied from it.
 */
export async function trainSgd(
  input: SgdInput,
  params: SgdParams,
  { devices, plan, copySeconds, rankUsers = RANKED_USERS, checkpoints, fetched }: TrainSgdOptions,
  ctx: ExecutionContext,
): Promise<SgdResult> {
  const { data, test, start } = input;
  const rate = new LearningRate(params);
  const rank = await rankingOf(input, params, rankUsers, ctx);
  let run = plan(devices);
  let steps: BoundPlan | undefined;
  const { factors, ...result } = await runLoop<TrainedFactors>(
    {
      called: 'epoch',
      maxIter: params.maxIter,
      devices,
      rule: new StoppingRule(params, test),
      copySeconds,
      fetched,
      checkpoints: checkpointsOf(checkpoints, toMatrices, (matrices) => fromMatrices(matrices, params)),
      measure: rank && ((factors, held) => rank(factorsOfRows(modelSides(factors, data, params)), held)),
      prepare: async (left, from) => {
        rate.rewind(from?.course as RateCourse | undefined);
        const own = left === devices ? run : plan(left);
        // Worker threads make the layout while this thread converts a model's factors.
        const laying = layOut(data, { test, schedule: scheduleOf(own), seed: params.seed }, ctx);
        const given = from?.factors ?? (start && fromModel(start, data, params));
        const made = bindSgd(own, params, data, await laying, given, 1 + (from?.iteration ?? 0));
        [run, steps] = [made.plan, made.bound];
        return trainingOf(input, params, rate, made);
      },
    },
    ctx,
  );
  return {
    ...result,
    sides: modelSides(factors, data, params),
    plan: steps ? planAfterRun(run, steps, result) : run,
  };
}

/** The ranking metric for early stopping, on the validation pairs; undefined if none is used. */
async function rankingOf(
  { data, test }: SgdInput,
  params: SgdParams,
  rankUsers: number,
  ctx: ExecutionContext,
): Promise<ReturnType<typeof validationMetric> | undefined> {
  const metric = rankingMetricOf(params);
  if (metric === undefined || test === undefined) return undefined;
  const pairs = await pairsByPosition(data, test, ctx);
  return validationMetric(metric, pairs, { rankUsers, seed: params.seed }, ctx);
}

/** The functions by which the training loop runs SGD. */
function trainingOf(
  { data, start }: SgdInput,
  params: SgdParams,
  rate: LearningRate,
  run: BoundRun,
): Training<TrainedFactors> {
  const { plan, bound, given } = run;
  const { ratings, scale, squares } = data;
  const { deviation } = scale;
  const noise = DIVERGED.absolute * deviation ** 2 * ratings.ratings;
  const penalty = penaltyOf(data, params);
  return {
    bound,
    keep: plan.keep,
    given: [...given],
    // Frees the host memory of ratings in bands that stay on the only device for the whole run. Nothing reads
    // them again: if that device is lost, the run ends with the last copy of the factors.
    settled: async (held) => {
      const [device] = plan.devices;
      if (ratings.parts.length > 1 && bandsLeave(scheduleOf(plan), device))
        await leaveRatings(ratings, bound.given.blocks, device.place, held);
    },
    // The loss with which the first epoch is compared: Σ r², the squared error if all factors are 0, and the
    // penalty of the random initial factors, which is most of the loss if most rows have few ratings. A good
    // first epoch has less, unless all ratings are equal. Then, and if factors are given, the initial loss is
    // measured.
    startLoss:
      start !== undefined || scale.alike
        ? 'measure'
        : deviation ** 2 * (squares + penalty(startNorms(data, params))),
    round: (epoch) => ({ rate: rate.of(epoch), epoch, next: epoch + 1 }),
    check: () => {},
    errors: (measured) => trainingErrors(measured, penalty, deviation),
    diverged: (loss, before) => !(loss <= DIVERGED.relative * before + noise),
    divergence: (epoch, loss, before) =>
      new DivergedError(
        `epoch ${epoch}: the loss is ${loss}, after ${before} before it; ${MOST_RESTARTS} runs at halved learning rates, the last of them ${rate.of(epoch)}, did not lower it`,
        {
          phase: 'train',
          iteration: epoch,
          advice: `Lower learningRate (α), which is ${params.learningRate}, or raise regParam (λ), which is ${params.regParam}`,
        },
      ),
    slower: (epoch) => {
      rate.halve();
      return rate.of(epoch);
    },
    accepted: (loss) => rate.adjust(loss),
    course: () => rate.course,
    factors: (results) => fromResults(results, params, run),
  };
}

/**
 * Returns a function that computes the penalty of both sides from their norms, in the unit of the scaled
 * ratings.
 */
function penaltyOf({ ratings, scale, rows, columns }: SgdData, params: SgdParams) {
  const lambdas = steppedLambdas(params, scale.deviation);
  // The norms include the constant feature 1, which adds 1 for each rating and has no penalty.
  const ones = params.biases ? ratings.ratings : 0;
  const term = (side: 'users' | 'items', { weighted, plain }: PenaltyNorms['users']) =>
    (lambdas[side] === 0 ? 0 : lambdas[side] * (weighted - ones)) + (shrinks(params, side) ? plain : 0);
  return (norms: PenaltyNorms): number =>
    term(rows.name, norms[rows.name]) + term(columns.name, norms[columns.name]);
}

/**
 * The factors from the results of the plan's end. Segments of columns are stored as wide as the widest, so
 * each is cut to its own width.
 */
function fromResults(
  results: StepResults,
  params: SgdParams,
  { plan, bound: { name, bands } }: BoundRun,
): TrainedFactors {
  const segments = scheduleOf(plan).deviceBlocks && bands?.columns.map(({ from, to }) => to - from);
  const features = sgdFeatures(params);
  return trainedFactors(params, (matrix) => {
    const width = matrix.key === 'columns' ? features : 1;
    return partsOf(results, `${name}/${matrix.name}`).map((values, part) =>
      matrix.side === 'column' && segments ? values.subarray(0, segments[part] * width) : values,
    );
  });
}

/**
 * The rate `bold` is multiplied by BOLD_GROWTH after an epoch whose loss fell, and by BOLD_CUT after one
 * whose loss rose (Gemulla et al.: DSGD, KDD 2011, section 5).
 */
const BOLD_GROWTH = 1.05;
const BOLD_CUT = 0.5;

/** The state of the rate: a factor of all later rates, and the loss of the previous epoch. */
type RateCourse = { readonly factor: number; readonly loss: number };

/**
 * The learning rate γ of each epoch, with α = `learningRate` and β = `decay`:
 *
 *     paper      γ_t = α / (1 + β t^1.5), t = 0, 1, ..    (cuMF_SGD, section 5.1; Yun et al.: NOMAD)
 *     constant   γ_t = α
 *     bold       α, then 5 % more after an epoch whose loss fell, and half after one whose loss rose
 *     adagrad    α, which the kernel divides by each row's own √(1 + G); G grows by its squared gradients
 *
 * `halve` is called after an epoch that diverged: it halves all later rates.
 */
export class LearningRate {
  readonly #params: Pick<SgdParams, 'rate' | 'learningRate' | 'decay'>;
  #factor = 1;
  #lastLoss = Number.POSITIVE_INFINITY;

  constructor(params: Pick<SgdParams, 'rate' | 'learningRate' | 'decay'>) {
    this.#params = params;
  }

  /** The rate of an epoch; epochs count from 1. */
  of(epoch: number): number {
    const { rate, learningRate, decay } = this.#params;
    const start = this.#factor * learningRate;
    return rate === 'paper' ? start / (1 + decay * (epoch - 1) ** 1.5) : start;
  }

  /** Adjusts the rate by the loss after an epoch whose result is kept. */
  adjust(loss: number): void {
    if (this.#params.rate === 'bold') this.#factor *= loss <= this.#lastLoss ? BOLD_GROWTH : BOLD_CUT;
    this.#lastLoss = loss;
  }

  /** State after the last epoch that was kept. */
  get course(): RateCourse {
    return { factor: this.#factor, loss: this.#lastLoss };
  }

  /** Restores a state. Default: the state before the first epoch. */
  rewind({ factor = 1, loss = Number.POSITIVE_INFINITY }: Partial<RateCourse> = {}): void {
    this.#factor = factor;
    this.#lastLoss = loss;
  }

  halve(): void {
    this.#factor /= 2;
  }
}
