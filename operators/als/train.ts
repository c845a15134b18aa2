import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { SPILL } from '../../engine/plan/place.ts';
import { freeBlocks, placeColumns } from '../ratings/sorting/columns-of-block.ts';
import { joinedRows, type ModelRows } from '../training/model-rows.ts';
import { type Checkpoints, checkpointsOf, type HostCopy, type Matrices } from '../training/host-copy.ts';
import { runLoop } from '../training/loop.ts';
import { planAfterRun } from '../training/planned-measures.ts';
import type { LoopResult, Training } from '../training/training.ts';
import { StoppingRule } from '../training/stopping-rule.ts';
import { modelRows } from './biases.ts';
import type { AlsData, AlsStart, FileBlocks, TrainedFactors } from './bind/als-data.ts';
import { bindAls } from './bind/bind-als.ts';
import { fileBlocks } from './bind/file-blocks.ts';
import { AlsTraining, type LossFacts } from './als-training.ts';
import { fromMatrices, startInMemory, startOf, toMatrices } from './factor-matrices.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';
import { leavePlaced } from './leave-placed.ts';
import type { RatingLevel } from './rating-unit.ts';
import { type RankedPairs, rankedPairs, ratingFacts, trainedData } from './training-data.ts';

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
