import { DivergedError } from '../../engine/errors.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import { dataSetName } from '../../engine/partition.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { SPILL } from '../../engine/plan/place.ts';
import type { RowPart } from '../../engine/row-parts.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import type { AttributeCoefficients } from '../attributes/attribute-matrix.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-pairs.ts';
import {
  validationMetric,
  type ValidationRanking,
  validationRanking,
} from '../evaluation/ranking/validation-metric.ts';
import { sortedRatingFacts } from '../evaluation/rating-facts.ts';
import { rankingMetricOf } from '../params/common.ts';
import { forSides } from '../params/param.ts';
import { inMemory } from '../ratings/parts-in-files.ts';
import { lengthOfRow } from '../ratings/ratings.ts';
import { blocksInFiles, freeBlocks, placeColumns } from '../ratings/sorting/columns-of-block.ts';
import { valuesOfStage } from '../tasks/run-tasks.ts';
import type { ValuesOf } from '../tasks/tasks.ts';
import type { BoundRun } from '../training/bind-plan.ts';
import { runLoop } from '../training/loop.ts';
import {
  measureStages,
  type Norms,
  normsOf,
  normsOfSides,
  testErrors,
  type TrainingErrors,
  trainingErrors,
} from '../training/loss.ts';
import { factorsOfRows, type ModelRows, partsOf, rowPartsOf } from '../training/model-rows.ts';
import { planAfterRun } from '../training/planned-training.ts';
import {
  checkpointsOf,
  type LoopOptions,
  type LoopResult,
  type Matrices,
  StoppingRule,
  type Training,
} from '../training/training.ts';
import type { SizedAlsParams } from './als-params.ts';
import { bindAls, cutsOf } from './bind.ts';
import {
  type AlsData,
  type AlsStart,
  biasPenalty,
  type FileBlocks,
  fromMatrices,
  keptFactors,
  modelCoefficients,
  modelRows,
  startInMemory,
  startOf,
  toMatrices,
  type TrainedFactors,
} from './factors.ts';
import { countPositive, type PositiveCounts } from './implicit/effective-ratings.ts';
import { implicitNames, implicitStages, TEST_PLACES } from './implicit/stages.ts';
import { implicitWeights, positiveTargets, shiftsOf, unobservedWeightOf } from './implicit/weights.ts';
import { leavePlaced } from './place-ratings.ts';
import { isInBlocks, otherSide, problemOf, type Side, sides } from './plan/problem.ts';
import type { RatingLevel } from './rating-unit.ts';
import {
  isTooLarge,
  itemTotals,
  largestOfRow,
  MOST_CANCELLED,
  solvedErrors,
  solvedObjective,
  squaresForObjective,
  unsolvedAdvice,
} from './solved-loss.ts';
import { isExact, stepsOf } from './solver-choice.ts';

export interface AlsResult extends Omit<LoopResult<unknown>, 'factors'> {
  /** X (m x f) and Θ (n x f); with biases both have two more features, see modelRows. */
  readonly sides: ModelRows;
  /** Coefficients of the attributes, of the sides that have them. */
  readonly coefficients: Readonly<Partial<Record<Side, AttributeCoefficients>>>;
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

export interface TrainAlsOptions extends Pick<
  LoopOptions<Matrices>,
  'copySeconds' | 'measuresEnds' | 'checkpoints' | 'fetched'
> {
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
  /** A ranking metric is measured over at most this number of users. */
  readonly rankUsers?: number | undefined;
}

/**
 * Explicit ALS with weighted-λ regularization (cuMF, section 2, eq. 1-2), or implicit ALS (cuMF_ALS, section
 * V-F): each iteration solves all items from the users, then all users from the items. If a device is lost,
 * the next attempt has a plan for the devices that are left. Throws DivergedError, and DeviceLostError when
 * the last device is lost before any factors were copied from it.
 */
export async function trainAls(
  ratings: AlsData,
  params: SizedAlsParams,
  options: TrainAlsOptions,
  ctx: ExecutionContext,
): Promise<AlsResult> {
  const { devices, plan, copySeconds, measuresEnds, checkpoints, fetched } = options;
  const { biases, rank, maxIter, regOffset } = params;
  const facts = await ratingFacts(ratings, params, options, ctx);
  const ranked = await rankedPairs(ratings, params, options.rankUsers, ctx);
  const data = trainedData(ratings, params, facts, ranked);
  const { offset, unit } = facts;
  const mean = biases ? facts.level.mean : 0;
  const rows = { users: data.byUser.rows, items: data.byItem.rows };
  const sidesOf = (factors: TrainedFactors) =>
    modelRows(factors, rows, rank, biases ? mean * unit : undefined, unit);
  let planned = plan(devices);
  let bound: BoundPlan | undefined;
  let blocks: FileBlocks = {};
  const { factors, ...result } = await runLoop<TrainedFactors>(
    {
      called: 'iteration',
      maxIter,
      devices,
      rule: new StoppingRule(params, ratings.test),
      copySeconds,
      measuresEnds,
      fetched,
      checkpoints: checkpointsOf(
        checkpoints,
        (version) => toMatrices(version, rank),
        (matrices) => fromMatrices(matrices, rank, factorFileBytes(planned) > 0),
      ),
      measure: ranked.rank && ((version, held) => ranked.rank!(factorsOfRows(sidesOf(version)), held)),
      prepare: async (left, from) => {
        const own = left === devices ? planned : plan(left);
        await freeBlocks(Object.values(blocks).flat(), ctx);
        blocks = await fileBlocks(own, data, ctx);
        const made = bindAls(
          own,
          { ...data, blocks },
          { biases, mean, offset, unit },
          from ? startOf(from.factors, rank) : options.start,
        );
        await ctx.executor.spilled?.requireRoom(factorFileBytes(made.plan));
        for (const cut of made.columnCuts)
          await placeColumns(cut, { stage: 'cut-columns', local: true }, ctx);
        [planned, bound] = [made.plan, made.bound];
        return {
          ...alsTraining(made, data, params, facts, ranked.ranking),
          starting: (held) => leavePlaced(data, made.bound, left, held),
        };
      },
    },
    ctx,
  );
  return {
    ...result,
    sides: sidesOf(factors),
    coefficients: modelCoefficients(factors, rank, biases ? mean * unit : undefined, unit),
    raw: () => startInMemory(factors, rank),
    plan: bound ? planAfterRun(planned, bound, result) : planned,
    ...(regOffset === 0 ? {} : { ratingDeviation: (unit * offset) / regOffset }),
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
  readonly positive?: PositiveCounts;
}

/**
 * Errors of a thousandth of the ratings, squared. Below it a loss is what float32 leaves of a perfect fit, by
 * equations that may be nearly singular.
 */
const ROUNDING = 1e-6;

/** The functions by which the training loop runs ALS. */
export function alsTraining(
  { plan, bound, given }: BoundRun,
  data: AlsData,
  params: SizedAlsParams,
  facts: LossFacts,
  ranking: ValidationRanking | undefined,
): Training<TrainedFactors> {
  const { name } = bound;
  const { byUser, byItem } = data;
  const { unit, level, offset, targets } = facts;
  const { implicitPrefs, biases, regParam, biasDamping } = params;
  const sizes = { users: byUser.rows, items: byItem.rows, ratings: byUser.ratings };
  const penalties = (norms: Norms) => {
    const of = (side: Side) =>
      (regParam / unit) * norms[side].weighted +
      offset * norms[side].plain +
      biasPenalty(norms[side], regParam, forSides(biasDamping)[side]);
    return { users: of('users'), items: of('items') };
  };
  const ranked = (measured: StepResults) =>
    ranking && { testMetrics: ranking.values(placesOf(measured, name)) };
  const refits = data.attributes?.users !== undefined;
  const errorsOfRound = (measured: StepResults, round: StepResults): TrainingErrors | undefined => {
    const objective = solvedObjective(round);
    if (implicitPrefs) {
      // The objective covers all pairs, with or without a rating, and the users' penalty.
      const items = sumOf(measured, implicitStages.items, 'weighted-norm');
      const solved = targets + objective + items + ridges(measured);
      const loss = solved + (refits ? refittedPenalty(measured, round) : 0);
      return loss * MOST_CANCELLED > targets ? { loss, fromSolve: true, ...ranked(measured) } : undefined;
    }
    const norms = normsOfSides(measured);
    const squares = squaresForObjective(byItem.ratings, level, biases ? norms.items : undefined);
    const { users, items } = penalties(norms);
    const before = refits
      ? penalties({ ...norms, users: normsOf(round, measureStages.solved) }).users
      : users;
    return solvedErrors(
      refits ? objective + users - before : objective,
      squares,
      { users, items: items + ridges(measured) },
      byUser.ratings,
      unit,
      testErrors(measured, unit),
    );
  };
  // Σ r², the loss if all factors are 0.
  const squares = implicitPrefs
    ? targets
    : byUser.ratings * unit ** 2 * (level.mean ** 2 + level.deviation ** 2);
  const factorsOf = (results: StepResults, side: Side): RowPart[] =>
    rowPartsOf(results, `${name}/${side}`, biases ? partsOf(results, `${name}/${side}-bias`) : undefined);
  const ridges = (measured: StepResults) => ridgePenalty(measured, params, unit);
  return {
    bound,
    keep: plan.keep,
    given: [...given],
    startLoss: undefined,
    round: (number) => ({ cgSteps: stepsOf(params, sizes, number) }),
    check: (number, results) => requireSolved(number, results, bound, data, params, unit),
    errors: (measured) => {
      if (implicitPrefs) {
        const { loss } = implicitErrors(measured, name, params);
        return { loss: loss + ridges(measured), ...ranked(measured) };
      }
      const penalty = (norms: Norms) => {
        const { users, items } = penalties(norms);
        return users + items + ridges(measured);
      };
      return trainingErrors(measured, penalty, unit);
    },
    // If brief measurements skip a stage, the tasks that solve the users return the loss of their rows. The
    // errors are then computed from it.
    ...(bound.phases.measure.some(({ brief }) => brief !== undefined) && { errorsOfRound }),
    // The loss of implicit data can be negative, so its size is |first|: each rating of a repeated pair is
    // counted in place of an unobserved zero, but the pair has only one such zero. A loss within ROUNDING of
    // the loss of factors that are 0 is a perfect fit, whose loss is rounding and may rise.
    diverged: (loss, first) => !(loss <= first + 9 * Math.abs(first) + ROUNDING * squares),
    divergence: (number, loss, first) => divergedError(number, [loss, first], params, unit),
    factors: (results, last) => {
      const factors = {
        users: factorsOf(results, 'users'),
        items: factorsOf(results, 'items'),
        coefficients: coefficientsOf(results, name, data, biases),
      };
      return last ? factors : keptFactors(factors);
    },
  };
}

function divergedError(
  number: number,
  [loss, first]: readonly [loss: number, first: number],
  { regParam, solver }: SizedAlsParams,
  unit: number,
): DivergedError {
  const verb = isTooLarge(regParam / unit) ? 'Lower' : 'Raise';
  return new DivergedError(
    `iteration ${number}, side users: the loss is ${loss}, after ${first} in the first iteration`,
    {
      phase: 'train',
      iteration: number,
      side: 'users',
      advice: `${verb} regParam (λ), which is ${regParam}${isExact(solver) ? '' : ', or use solver cholesky'}`,
    },
  );
}

/** For implicit data: the change of the users' penalty, after they were solved, by fitting their coefficients. */
function refittedPenalty(measured: StepResults, round: StepResults): number {
  return (
    sumOf(measured, implicitStages.users, 'weighted-norm') -
    sumOf(round, measureStages.solved, 'weighted-norm')
  );
}

/** The coefficients of the sides that have attributes. `name`: prefix of the names of the data sets. */
function coefficientsOf(
  results: StepResults,
  name: string,
  { attributes }: AlsData,
  biases: boolean,
): TrainedFactors['coefficients'] {
  const of = (set: string) => partsOf(results, `${name}/${set}-coefficients`)[0];
  return Object.fromEntries(
    sides
      .filter((side) => attributes?.[side])
      .map((side) => [side, { values: of(side), ...(biases && { bias: of(`${side}-bias`) }) }]),
  );
}

/** λμ‖A‖² of both sides, in the unit of the training. */
function ridgePenalty(
  measured: StepResults,
  { regParam, attributeRegParam }: SizedAlsParams,
  unit: number,
): number {
  const squares = (target: string) =>
    valuesOfStage(measured, `penalty-coefficients-${target}`, 'weighted-norm').reduce(
      (sum, { plain }) => sum + plain,
      0,
    );
  return sides.reduce(
    (sum, side) => sum + regParam * attributeRegParam * (squares(side) / unit + squares(`${side}-bias`)),
    0,
  );
}

/**
 * The ranks and ties of the validation pairs, from all parts. A device that works on slices of users returns
 * them in a Float32Array whose bits are integers.
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
  { slices }: BoundPlan,
  data: AlsData,
  params: SizedAlsParams,
  unit: number,
): void {
  for (const side of ['items', 'users'] as const) {
    const ratings = side === 'users' ? data.byUser : data.byItem;
    const bad = badRow(results, side, slices, ratings.rows);
    if (bad === undefined) continue;
    const id = keyText(data[side], bad);
    const count = lengthOfRow(ratings, bad);
    // 0 if the row's ratings are in a file, or on devices alone.
    const part = ratings.parts.find(({ from, rows }) => bad < from + rows);
    const largest = (part?.blocks ?? []).reduce(
      (most, { block }) => Math.max(most, largestOfRow(block, bad - part!.from)),
      0,
    );
    throw new DivergedError(
      `iteration ${number}, side ${side}: the normal equations of ${side.slice(0, -1)} ${id} (${count} ratings) are singular or not finite`,
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

/**
 * The first row, over all parts of a side, whose solution is not finite. A task reports the row's index
 * within its part; a part's values have the order of its slices (row ranges).
 */
function badRow(
  results: StepResults,
  side: Side,
  slices: BoundPlan['slices'],
  rows: number,
): number | undefined {
  const stage = `update-${side}`;
  const values = (['update', 'update-implicit', 'solve-equations', 'end-gradients'] as const).flatMap(
    (kernel) => results.byPart(stage, kernel, 'factors') as ValuesOf<'update'>[][],
  );
  let first = 0;
  for (const [part, ranges] of slices[stage].entries()) {
    const bad = values[part]?.find((value) => value.badRow >= 0);
    if (bad !== undefined) return Math.min(first + bad.badRow, rows - 1);
    first += ranges.at(-1)?.to ?? 0;
  }
  return undefined;
}

/**
 * The loss of implicit data, computed in float64: Σ over all pairs of c (p - x_uᵀθ_v)² + Σ shift_u ‖x_u‖² + Σ
 * shift_v ‖θ_v‖², where c is the weight of a pair, and p is 1 for a positive rating, else 0. Σ (x_uᵀθ_v)²
 * over all pairs is the trace of the product of both Gram matrices. Each Gram matrix contains the factor w₀,
 * the weight of pairs without a rating, so the trace is divided by w₀. `prefix`: prefix of the names of the
 * data sets.
 */
function implicitErrors(measured: StepResults, prefix: string, params: SizedAlsParams): TrainingErrors {
  const [users, items] = sides.map(
    (side) => measured.partitions(`${prefix}/${implicitNames(side).gram}`)[0].columns.values as Float32Array,
  );
  let trace = 0;
  for (let k = 0; k < params.rank ** 2; k++) trace += users[k] * items[k];
  const observed = sumOf(measured, implicitStages.error, 'implicit-error');
  const penalty = sides.reduce((sum, side) => sumOf(measured, implicitStages[side], 'weighted-norm', sum), 0);
  return { loss: trace / unobservedWeightOf(params) + observed + penalty };
}

function sumOf(
  measured: StepResults,
  stage: string,
  kernel: 'implicit-error' | 'weighted-norm',
  before = 0,
): number {
  return valuesOfStage(measured, stage, kernel).reduce((sum, values) => sum + values.sum, before);
}
