import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { SPILL } from '../../engine/plan/place.ts';
import { blocksInFiles, freeBlocks, placeColumns } from '../ratings/sorting/columns-of-block.ts';
import { joinedRows, type ModelRows, partsOf, rowPartsOf } from '../training/model-rows.ts';
import {
  type Checkpoints,
  checkpointsOf,
  type HostCopy,
  type Matrices,
  type LoopResult,
  type Training,
  StoppingRule,
} from '../training/training.ts';
import { runLoop } from '../training/loop.ts';
import { planAfterRun } from '../training/planned-training.ts';
import {
  modelRows,
  fromMatrices,
  startInMemory,
  startOf,
  toMatrices,
  type AlsData,
  type AlsStart,
  type FileBlocks,
  type TrainedFactors,
  biasPenalty,
  keptFactors,
} from './factors.ts';
import { bindAls, cutsOf } from './bind.ts';
import type { SizedAlsParams } from './als-params.ts';
import { leavePlaced } from './place-ratings.ts';
import type { RatingLevel } from './rating-unit.ts';
import { dataSetName } from '../../engine/partition.ts';
import { isInBlocks, otherSide, sides, problemOf } from './plan/problem.ts';
import {
  validationMetric,
  type ValidationRanking,
  validationRanking,
} from '../evaluation/ranking/validation-metric.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-pairs.ts';
import { sortedRatingFacts } from '../evaluation/rating-facts.ts';
import { rankingMetricOf } from '../params/common.ts';
import { inMemory } from '../ratings/parts-in-files.ts';
import { countPositive, type PositiveCounts } from './implicit/effective-ratings.ts';
import { implicitWeights, positiveTargets, shiftsOf, unobservedWeightOf } from './implicit/weights.ts';
import {
  itemTotals,
  MOST_CANCELLED,
  solvedErrors,
  solvedObjective,
  squaresForObjective,
  isTooLarge,
  largestOfRow,
  unsolvedAdvice,
} from './solved-loss.ts';
import { DivergedError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { RowPart } from '../../engine/row-parts.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import type { BoundRun } from '../training/bind-plan.ts';
import {
  normsOfSides,
  type SideNorms,
  testErrors,
  type TrainingErrors,
  trainingErrors,
} from '../training/loss.ts';
import { forSides } from '../params/table.ts';
import { isExact, stepsOf } from './solver-choice.ts';
import { implicitNames, implicitStages, TEST_PLACES } from './implicit/stages.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import { lengthOfRow, type Ratings } from '../ratings/ratings.ts';
import type { ValuesOf } from '../tasks/tasks.ts';
import { valuesOfStage } from '../tasks/run-tasks.ts';

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

/** Facts about the ratings that the loss needs and that the measuring tasks do not return. */
export interface LossFacts {
  /** o of λ n^ν + o, in the ratings' unit. */
  readonly offset: number;
  readonly unit: number;
  readonly level: RatingLevel;
  /** For implicit data: see positiveTargets. */
  readonly targets: number;
  /** For implicit data. */
  readonly positive?: PositiveCounts;
}

/**
 * Errors of a thousandth of the ratings, squared. Below it a loss is what float32 leaves of a perfect fit, by
 * equations that may be nearly singular.
 */
const ROUNDING = 1e-6;

type AlsFunctions = Omit<Training<TrainedFactors>, 'bound' | 'keep' | 'given' | 'starting'>;

/** ALS on a bound plan, for the training loop. */
export class AlsTraining implements AlsFunctions {
  readonly startLoss = undefined;
  readonly errorsOfRound?: NonNullable<AlsFunctions['errorsOfRound']>;
  readonly #data: AlsData;
  readonly #params: SizedAlsParams;
  readonly #facts: LossFacts;
  readonly #ranking: ValidationRanking | undefined;
  readonly #bound: BoundRun['bound'];

  constructor(
    data: AlsData,
    params: SizedAlsParams,
    facts: LossFacts,
    ranking: ValidationRanking | undefined,
    bound: BoundRun['bound'],
  ) {
    this.#data = data;
    this.#params = params;
    this.#facts = facts;
    this.#ranking = ranking;
    this.#bound = bound;
    // If brief measurements skip a stage, the tasks that solve the users return the loss of their rows. The
    // errors are then computed from it.
    if (bound.phases.measure.some(({ brief }) => brief !== undefined))
      this.errorsOfRound = (measured, round) =>
        params.implicitPrefs
          ? this.#implicitOfRound(measured, round)
          : this.#explicitOfRound(measured, round);
  }

  round(number: number): JsonObject {
    const { byUser, byItem } = this.#data;
    const sizes = { users: byUser.rows, items: byItem.rows, ratings: byUser.ratings };
    return { cgSteps: stepsOf(this.#params, sizes, number) };
  }

  check(number: number, results: StepResults): void {
    const { slices } = this.#bound;
    const { unit } = this.#facts;
    requireSolved(number, results, { data: this.#data, slices, params: this.#params, unit });
  }

  errors(measured: StepResults): TrainingErrors {
    if (this.#params.implicitPrefs)
      return {
        ...implicitErrors(measured, this.#bound.name, this.#params),
        ...this.#rankingOf(measured),
      };
    return trainingErrors(
      measured,
      ({ users, items }) => this.#penaltyOf(users, 'users') + this.#penaltyOf(items, 'items'),
      this.#facts.unit,
    );
  }

  /**
   * The loss has diverged if it exceeds the first loss by nine times its size. The size is |first|, since the
   * loss of implicit data can be negative: each rating of a repeated pair is counted in place of an
   * unobserved zero, but the pair has only one such zero. A loss within ROUNDING of the loss of factors that
   * are 0 is a perfect fit, whose loss is rounding and may rise.
   */
  diverged(loss: number, first: number): boolean {
    return !(loss <= first + 9 * Math.abs(first) + ROUNDING * this.#squares);
  }

  /** Σ r², the loss if all factors are 0. */
  get #squares(): number {
    const { level, unit, targets } = this.#facts;
    return this.#params.implicitPrefs
      ? targets
      : this.#data.byUser.ratings * unit ** 2 * (level.mean ** 2 + level.deviation ** 2);
  }

  divergence(number: number, loss: number, first: number): DivergedError {
    const { regParam, solver } = this.#params;
    const change = isTooLarge(regParam / this.#facts.unit) ? 'Lower' : 'Raise';
    return new DivergedError(
      `iteration ${number}, side users: the loss is ${loss}, after ${first} in the first iteration`,
      {
        phase: 'train',
        iteration: number,
        side: 'users',
        advice: `${change} regParam (λ), which is ${regParam}${isExact(solver) ? '' : ', or use solver cholesky'}`,
      },
    );
  }

  factors(results: StepResults, last: boolean): TrainedFactors {
    const factors = { users: this.#side(results, 'users'), items: this.#side(results, 'items') };
    return last ? factors : keptFactors(factors);
  }

  #side(results: StepResults, side: 'users' | 'items'): RowPart[] {
    const { name } = this.#bound;
    const own = this.#params.biases ? partsOf(results, `${name}/${side}-bias`) : undefined;
    return rowPartsOf(results, `${name}/${side}`, own);
  }

  #implicitOfRound(measured: StepResults, round: StepResults): TrainingErrors | undefined {
    const errors = implicitErrorsOfSolve(measured, solvedObjective(round), this.#facts.targets);
    return errors && { ...errors, ...this.#rankingOf(measured) };
  }

  #explicitOfRound(measured: StepResults, round: StepResults): TrainingErrors | undefined {
    const { unit, level } = this.#facts;
    const { users, items } = normsOfSides(measured);
    const ofBiases = this.#params.biases ? items : undefined;
    return solvedErrors(
      solvedObjective(round),
      squaresForObjective(this.#data.byItem.ratings, level, ofBiases),
      { users: this.#penaltyOf(users, 'users'), items: this.#penaltyOf(items, 'items') },
      this.#data.byUser.ratings,
      unit,
      testErrors(measured, unit),
    );
  }

  #penaltyOf(norms: SideNorms, side: 'users' | 'items'): number {
    const { regParam, biasDamping } = this.#params;
    const { unit, offset } = this.#facts;
    return (
      (regParam / unit) * norms.weighted +
      offset * norms.plain +
      biasPenalty(norms, regParam, forSides(biasDamping)[side])
    );
  }

  #rankingOf(measured: StepResults): Pick<TrainingErrors, 'testMetrics'> | undefined {
    return this.#ranking && { testMetrics: this.#ranking.values(placesOf(measured, this.#bound.name)) };
  }
}

/**
 * The ranks and ties of the validation pairs, from all parts. A device that works on slices of users returns them in a
 * Float32Array whose bits are integers.
 */
function placesOf(measured: StepResults, name: string): Uint32Array {
  const parts = measured
    .partitions(`${name}/${TEST_PLACES}`)
    .map(({ columns: { values } }) => new Uint32Array(values.buffer, values.byteOffset, values.length));
  const places = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let filled = 0;
  for (const part of parts) {
    places.set(part, filled);
    filled += part.length;
  }
  return places;
}

/** Throws DivergedError if an iteration has a row without a finite solution. */
function requireSolved(
  number: number,
  results: StepResults,
  {
    data,
    slices,
    params,
    unit,
  }: {
    readonly data: AlsData;
    /** The row ranges of the tasks, by stage and part. */
    readonly slices: Readonly<Record<string, readonly (readonly RowRange[])[]>>;
    readonly params: SizedAlsParams;
    readonly unit: number;
  },
): void {
  const blocks = { users: data.byUser, items: data.byItem };
  for (const side of ['items', 'users'] as const) {
    const bad = badRow(solvedValues(results, side), slices[`update-${side}`], blocks[side].rows);
    if (bad === undefined) continue;
    const id = keyText(data[side], bad);
    const count = lengthOfRow(blocks[side], bad);
    const largest = largestOf(blocks[side], bad);
    throw new DivergedError(
      `iteration ${number}, side ${side}: the normal equations of ${side === 'users' ? 'user' : 'item'} ${id} (${count} ratings) are singular or not finite`,
      {
        phase: 'train',
        iteration: number,
        side,
        id,
        advice: unsolvedAdvice({ params, unit, count, largest }),
      },
    );
  }
}

/** Values of the tasks that solve the rows of a side, by part. */
function solvedValues(results: StepResults, side: 'users' | 'items'): ValuesOf<'update'>[][] {
  return (['update', 'update-implicit', 'solve-equations', 'end-gradients'] as const).flatMap(
    (kernel) => results.byPart(`update-${side}`, kernel, 'factors') as ValuesOf<'update'>[][],
  );
}

/**
 * The index of the first row, over all parts of a side, whose solution is not finite. A task reports the
 * row's index within its part; a part's values have the order of its slices (row ranges).
 */
function badRow(
  values: readonly (readonly ValuesOf<'update'>[])[],
  slices: readonly (readonly RowRange[])[],
  rows: number,
): number | undefined {
  let first = 0;
  for (const [part, ranges] of slices.entries()) {
    const bad = values[part]?.find((value) => value.badRow >= 0);
    if (bad !== undefined) return Math.min(first + bad.badRow, rows - 1);
    first += ranges.at(-1)?.to ?? 0;
  }
  return undefined;
}

/** The largest |r| of a row; 0 if its ratings are in a file, or on devices alone. */
function largestOf({ parts }: Ratings, row: number): number {
  const part = parts.find(({ from, rows }) => row < from + rows);
  const blocks = part?.blocks ?? [];
  return blocks.reduce((most, { block }) => Math.max(most, largestOfRow(block, row - part!.from)), 0);
}

/**
 * Computes the loss of implicit data from the objective of the users, which is a result of solving them. The
 * objective covers all pairs, with or without a rating, and the users' penalty. `targets`: the constant that
 * it lacks, see positiveTargets. Returns undefined if cancellation leaves too few digits.
 */
function implicitErrorsOfSolve(
  measured: StepResults,
  objective: number,
  targets: number,
): TrainingErrors | undefined {
  const loss =
    targets +
    objective +
    valuesOfStage(measured, implicitStages.items, 'weighted-norm').reduce(
      (sum, values) => sum + values.sum,
      0,
    );
  return loss * MOST_CANCELLED > targets ? { loss, fromSolve: true } : undefined;
}

/**
 * The loss of implicit data, computed in float64: Σ over all pairs of c (p - x_uᵀθ_v)² + Σ shift_u ‖x_u‖² + Σ
 * shift_v ‖θ_v‖², where c is the weight of a pair, and p is 1 for a positive rating, else 0. Σ (x_uᵀθ_v)²
 * over all pairs is the trace of the product of both Gram matrices. Each Gram matrix contains the factor w₀,
 * the weight of pairs without a rating, so the trace is divided by w₀. `prefix`: prefix of the names of the
 * data sets.
 */
function implicitErrors(measured: StepResults, prefix: string, params: SizedAlsParams): TrainingErrors {
  const [users, items] = (['users', 'items'] as const).map(
    (side) => measured.partitions(`${prefix}/${implicitNames(side).gram}`)[0].columns.values as Float32Array,
  );
  const { rank } = params;
  let trace = 0;
  for (let k = 0; k < rank * rank; k++) trace += users[k] * items[k];
  const observed = valuesOfStage(measured, implicitStages.error, 'implicit-error').reduce(
    (sum, values) => sum + values.sum,
    0,
  );
  const penalty = (['users', 'items'] as const).reduce(
    (all, side) =>
      valuesOfStage(measured, implicitStages[side], 'weighted-norm').reduce(
        (sum, values) => sum + values.sum,
        all,
      ),
    0,
  );
  return { loss: trace / unobservedWeightOf(params) + observed + penalty };
}
