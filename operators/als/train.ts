import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { SPILL } from '../../engine/plan/place.ts';
import { blocksInFiles, freeBlocks, placeColumns } from '../ratings/sorting/columns-of-block.ts';
import { joinedRows, type ModelRows } from '../training/model-rows.ts';
import { type Checkpoints, checkpointsOf, type HostCopy, type Matrices } from '../training/host-copy.ts';
import { runLoop } from '../training/loop.ts';
import { planAfterRun } from '../training/planned-measures.ts';
import type { LoopResult, Training } from '../training/training.ts';
import { StoppingRule } from '../training/stopping-rule.ts';
import { modelRows } from './biases.ts';
import type { AlsData, AlsStart, FileBlocks, TrainedFactors } from './bind/als-data.ts';
import { bindAls, cutsOf } from './bind/bind-als.ts';
import { AlsTraining, type LossFacts } from './als-training.ts';
import { fromMatrices, startInMemory, startOf, toMatrices } from './factor-matrices.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';
import { leavePlaced } from './place-ratings.ts';
import type { RatingLevel } from './rating-unit.ts';
import { dataSetName } from '../../engine/partition.ts';
import { isInBlocks, otherSide, sides } from './plan/grid.ts';
import { problemOf } from './plan/problem.ts';
import {
  validationMetric,
  type ValidationRanking,
  validationRanking,
} from '../evaluation/ranking/validation-metric.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-pairs.ts';
import { sortedRatingFacts } from '../evaluation/rating-facts.ts';
import { rankingMetricOf } from '../params/common.ts';
import { inMemory } from '../ratings/parts-in-files.ts';
import { countPositive } from './implicit/count-positive.ts';
import { implicitWeights, positiveTargets, shiftsOf } from './implicit/weights.ts';
import { itemTotals } from './solved-loss.ts';

export interface AlsResult extends Omit<LoopResult<unknown>, 'factors'> {
  /** X (m x f) and Θ (n x f); with biases both have two more features, see modelRows. */
  readonly sides: ModelRows;
  /** The plan that was run. */
  readonly plan: PhysicalPlan;
  /** Standard deviation of the ratings, present if `regOffset` is used, which is measured in it. */
  readonly ratingDeviation?: number;
  /**
   * The factors in the scaled unit of the training (see `unit`), with biases separate: the start for
   * continuing this training.
   */
  readonly raw: () => AlsStart;
}

export interface TrainAlsOptions {
  /** Devices of the plan that hold factors. */
  readonly devices: readonly DeviceInfo[];
  readonly plan: (devices: readonly DeviceInfo[]) => PhysicalPlan;
  /**
   * The number by which the given ratings were divided before (see ratingUnit), default 1. λ, the model and
   * the errors are in the unit of the original ratings.
   */
  readonly unit?: number;
  /** Mean and deviation of the given ratings, if known. */
  readonly level?: RatingLevel | undefined;
  /** Initial factors; default: drawn at random. */
  readonly start?: AlsStart;
  /** See LoopOptions. */
  readonly copySeconds?: number;
  /** A ranking metric is measured over at most this number of users. */
  readonly rankUsers?: number | undefined;
  /** See LoopOptions. */
  readonly measuresEnds?: boolean | undefined;
  /** See LoopOptions. */
  readonly checkpoints?: Checkpoints<Matrices> | undefined;
  /** See LoopOptions. */
  readonly fetched?: (() => void) | undefined;
}

/**
 * Explicit ALS with weighted-λ regularization (cuMF, section 2, eq. 1-2), or implicit ALS (cuMF_ALS, section
 * V-F): each iteration solves all items from the users, then all users from the items. Throws DivergedError,
 * and DeviceLostError when the last device is lost before any factors were copied from it.
 */
export async function trainAls(
  ratings: AlsData,
  params: SizedAlsParams,
  options: TrainAlsOptions,
  ctx: ExecutionContext,
): Promise<AlsResult> {
  const facts = await ratingFacts(ratings, params, options, ctx);
  const ranked = await rankedPairs(ratings, params, options.rankUsers, ctx);
  const data = trainedData(ratings, params, facts, ranked);
  const run = new AlsRun(data, params, facts, ranked, options);
  const { devices, copySeconds, measuresEnds, checkpoints, fetched } = options;
  const { rank } = ranked;
  const { factors, ...result } = await runLoop<TrainedFactors>(
    {
      called: 'iteration',
      maxIter: params.maxIter,
      devices,
      rule: new StoppingRule(params, ratings.test),
      copySeconds,
      measuresEnds,
      fetched,
      checkpoints: checkpointsOf(
        checkpoints,
        (factors) => toMatrices(factors, params.rank),
        (matrices) => fromMatrices(matrices, params.rank, run.hasFactorFiles),
      ),
      measure: rank && ((version, held) => rank(joinedRows(run.sidesOf(version)), held)),
      prepare: (left, from) => run.prepare(left, from, ctx),
    },
    ctx,
  );
  return {
    ...result,
    sides: run.sidesOf(factors),
    raw: () => startInMemory(factors, params.rank),
    plan: run.planOf(result),
    ...(params.regOffset === 0 ? {} : { ratingDeviation: (facts.unit * facts.offset) / params.regOffset }),
  };
}

/**
 * Most bytes of factors in files during a training: the old and the new version, the best one if kept, and
 * the version of which a checkpoint is being written.
 */
function factorFileBytes({ datasets, keep, checkpoint }: PhysicalPlan): number {
  const versions = (keep.best ? 3 : 2) + (checkpoint === undefined ? 0 : 1);
  return datasets
    .filter(({ given, derived }) => !given && !derived)
    .flatMap(({ columns = 1, parts }) =>
      parts.map(({ rows, at }) => (at[0] === SPILL ? 4 * rows * columns : 0)),
    )
    .reduce((sum, bytes) => sum + versions * bytes, 0);
}

/**
 * The ratings of one training and the plan of its current attempt. If a device is lost, the next attempt has
 * a plan for the devices that are left.
 */
class AlsRun {
  readonly #data: AlsData;
  readonly #params: SizedAlsParams;
  readonly #facts: LossFacts;
  readonly #ranking: RankedPairs['ranking'];
  readonly #options: TrainAlsOptions;
  readonly #mean: number;
  #planned: PhysicalPlan;
  #bound: BoundPlan | undefined;
  #blocks: FileBlocks = {};

  constructor(
    data: AlsData,
    params: SizedAlsParams,
    facts: LossFacts,
    { ranking }: RankedPairs,
    options: TrainAlsOptions,
  ) {
    this.#data = data;
    this.#params = params;
    this.#facts = facts;
    this.#ranking = ranking;
    this.#options = options;
    this.#mean = params.biases ? facts.level.mean : 0;
    this.#planned = options.plan(options.devices);
  }

  /** True if parts of the factors are in files. */
  get hasFactorFiles(): boolean {
    return factorFileBytes(this.#planned) > 0;
  }

  /** Binds the plan for these devices to the ratings. */
  async prepare(
    devices: readonly DeviceInfo[],
    from: HostCopy<TrainedFactors> | undefined,
    ctx: ExecutionContext,
  ): Promise<Training<TrainedFactors>> {
    const { plan, start, devices: all } = this.#options;
    const { biases, rank } = this.#params;
    const { offset, unit } = this.#facts;
    const planned = devices === all ? this.#planned : plan(devices);
    await freeBlocks(Object.values(this.#blocks).flat(), ctx);
    this.#blocks = await fileBlocks(planned, this.#data, ctx);
    const made = bindAls(
      planned,
      { ...this.#data, blocks: this.#blocks },
      { biases, mean: this.#mean, offset, unit },
      from ? startOf(from.factors, rank) : start,
    );
    await ctx.executor.spilled?.requireRoom(factorFileBytes(made.plan));
    for (const cut of made.columnCuts) await placeColumns(cut, { stage: 'cut-columns', local: true }, ctx);
    const { bound } = made;
    [this.#planned, this.#bound] = [made.plan, bound];
    const training = new AlsTraining(this.#data, this.#params, this.#facts, this.#ranking, bound);
    return Object.assign(training, {
      bound,
      keep: made.plan.keep,
      given: [...made.given],
      starting: (held: ExecutionContext) => leavePlaced(this.#data, bound, devices, held),
    });
  }

  /** Rows of the model, in the ratings' own unit. */
  sidesOf(factors: TrainedFactors): ModelRows {
    const { byUser, byItem } = this.#data;
    const { unit } = this.#facts;
    const { rank, biases } = this.#params;
    const rows = { users: byUser.rows, items: byItem.rows };
    return modelRows(factors, rows, rank, biases ? this.#mean * unit : undefined, unit);
  }

  /** The plan as it was run. */
  planOf(result: Parameters<typeof planAfterRun>[2]): PhysicalPlan {
    return this.#bound ? planAfterRun(this.#planned, this.#bound, result) : this.#planned;
  }
}

/**
 * Cuts ratings in files into the blocks R(ij) of a plan, for each side that it solves from vertical parts of
 * the other side. Without such a side, or with ratings in memory, there are none.
 */
async function fileBlocks(
  planned: PhysicalPlan,
  data: Pick<AlsData, 'byUser' | 'byItem'>,
  ctx: ExecutionContext,
): Promise<FileBlocks> {
  const { grid } = problemOf(planned);
  const whole = { users: data.byUser, items: data.byItem };
  const cut = sides.filter(
    (side) => isInBlocks(grid, side) && whole[side].parts.every(({ blocks }) => blocks === undefined),
  );
  if (cut.length === 0) return {};
  const [cuts, name] = [cutsOf(grid, data), dataSetName('blocks')];
  const blocks: FileBlocks = {};
  for (const side of cut)
    Object.assign(blocks, {
      [side]: await blocksInFiles(whole[side], cuts[otherSide[side]], `${name}/${side}`, ctx),
    });
  return blocks;
}

/**
 * Computes the statistics of the ratings that the loss needs: mean and deviation, or for implicit data the
 * sum of the targets. `level`: mean and deviation, if already known.
 */
async function ratingFacts(
  ratings: AlsData,
  params: SizedAlsParams,
  { unit = 1, level: known }: { readonly unit?: number; readonly level?: RatingLevel | undefined },
  ctx: ExecutionContext,
): Promise<LossFacts> {
  if (params.implicitPrefs) {
    const level = { mean: 0, deviation: 0, columns: new Float32Array(0) };
    const positive = await countPositive(ratings, ctx);
    return { offset: 0, unit, level, targets: positiveTargets(positive, implicitWeights(params)), positive };
  }
  const level = known ?? (await sortedRatingFacts(ratings, ctx));
  return { offset: params.regOffset * level.deviation, unit, level, targets: 0 };
}

/**
 * A ranking metric of the validation pairs. It is measured either by steps of the plan (`ranking`) or by a
 * function on the host (`rank`).
 */
interface RankedPairs {
  readonly ranking?: ValidationRanking;
  readonly rank?: ReturnType<typeof validationMetric>;
}

/**
 * Prepares the ranking metric for early stopping, if there is one. For implicit data the plan's steps measure
 * it. For explicit data it is measured on the host, where biases are added to the factors as further
 * features.
 */
async function rankedPairs(
  { users, items, test, byUser }: AlsData,
  params: SizedAlsParams,
  rankUsers = RANKED_USERS,
  ctx: ExecutionContext,
): Promise<RankedPairs> {
  const metric = rankingMetricOf(params);
  if (metric === undefined || test === undefined) return {};
  const pairs = { users, items, test, train: await inMemory(byUser, ctx) };
  const limits = { rankUsers, seed: params.seed };
  return params.implicitPrefs
    ? { ranking: validationRanking(metric, pairs, limits, ctx) }
    : { rank: validationMetric(metric, pairs, limits, ctx) };
}

/**
 * Adds further inputs of the plan's steps to the ratings: for implicit data, the numbers that are added to
 * the diagonals of the rows' equations (shifts); with biases, the sum of each item's ratings.
 */
function trainedData(
  ratings: AlsData,
  params: SizedAlsParams,
  { level, positive }: LossFacts,
  { ranking }: RankedPairs,
): AlsData {
  const { byUser, byItem } = ratings;
  const test = ranking?.positives ?? ratings.test;
  if (positive === undefined)
    return { ...ratings, ...(params.biases ? { totals: itemTotals(byItem, level) } : {}), test };
  const shifts = {
    users: shiftsOf(positive.users, byItem.rows, params),
    items: shiftsOf(positive.items, byUser.rows, params),
  };
  return { ...ratings, shifts, test };
}
