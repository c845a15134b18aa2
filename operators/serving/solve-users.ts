import { DataError, UsageError } from '../../engine/errors.ts';
import type { Json, JsonObject } from '../../engine/json.ts';
import { type KeyColumn, keyCount, takeKeys, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import type { ValueWeight } from '../../engine/numbers/value-index.ts';
import { dataSetName, partitionRef, sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Device, Executor } from '../../engine/run/device.ts';
import { computeDevice, hostDevice } from '../../engine/run/devices.ts';
import { readWeight, weighBlock } from '../als/implicit/rating-weight.ts';
import { kernelOf } from '../als/plan/stages.ts';
import {
  emptyGram,
  factorsOf,
  type GivenRows,
  gramOf,
  type RowsSolver,
  shiftsOf,
  solveRows,
  solvingOf,
  type RowRule,
} from '../als/rows/solve-rows.ts';
import { ALL_ROWS } from '../als/solver-choice.ts';
import { MAXIMUM_FORMED_RANK } from '../params/common.ts';
import { factorStride } from '../planner/sizes.ts';
import { longestRow, type RatingBlock } from '../ratings/ratings.ts';
import { runTask, TaskRun } from '../tasks/run-tasks.ts';
import type { SearchIndex } from '../tasks/search-tasks.ts';
import { type FactorModel, type ItemRows, lookupOf, takeRows } from './factor-model.ts';
import { type Found, maskInput, searchParams, type SearchRequest } from './search.ts';

/**
 * The regularization and weights with which training computed the users' factors from the item factors. Users
 * that are added to the model later are computed in the same way, and items from the users' factors: the model
 * then has its sides swapped, and what is called user here is an item.
 */
export interface UserRule extends RowRule {
  /** Default: users. */
  readonly solves?: 'items';
  /** Weights of implicit ratings; undefined for explicit ones. */
  readonly weight?: ValueWeight;
}

/**
 * The least λ, also if the model was trained with 0: the equations of users with few ratings would be
 * singular.
 */
const LEAST_LAMBDA = 0.001;

/**
 * The rule (see UserRule) of a trained or loaded model, from its metadata. `meanBias` returns μ + β of the
 * average user; it is used for models that do not store μ. For items μ is 0, since the users' biases contain it.
 * Throws UsageError for a model without λ, such as Spark's, unless `regParam` is given.
 */
export function userRule(
  metadata: JsonObject,
  rank: number,
  meanBias: () => number,
  { regParam, solves }: { readonly regParam?: number | undefined; readonly solves?: 'items' | undefined },
): UserRule {
  const params = (metadata.params ?? {}) as JsonObject;
  const { regParamUsers, regParamItems } = params;
  const own = solves === 'items' ? regParamItems : regParamUsers;
  const lambda = Math.max(lambdaOf(params, regParam ?? own), LEAST_LAMBDA);
  const offset = offsetOf(params, metadata);
  const rule = {
    rank,
    nonnegative: params.nonnegative === true,
    lambda,
    exponent: numberOr(params.regExponent, 1),
    ...(solves && { solves }),
  };
  if (params.implicitPrefs === true) {
    const alpha = numberOr(params.alpha, 1);
    const base = typeof params.unobservedWeight === 'number' ? 0 : 1;
    const implicit = { alpha, base, unobserved: numberOr(params.unobservedWeight, 1) };
    return { ...rule, implicit, weight: readWeight(metadata.ratingWeight) };
  }
  if (params.biases !== true) return { ...rule, offset };
  const deviation = deviationOf(metadata);
  const mean = solves === 'items' ? 0 : numberOr(metadata.meanRating, Number.NaN);
  const dampings = [params.biasDamping].flat();
  return {
    ...rule,
    offset,
    mean: Number.isNaN(mean) ? meanBias() : mean,
    damping: numberOr(solves === 'items' ? dampings.at(-1) : dampings[0], 0),
    // SGD scales ratings to standard deviation 1 and regularizes biases and factors by the same λ. In the
    // ratings' own scale, with standard deviation σ, that is λ for factors and λ / σ for biases.
    biasLambda: metadata.algorithm === 'sgd' && deviation > 0 ? lambda / deviation : lambda,
  };
}

/** The weight of pairs without a rating; undefined for explicit data. */
export function unobservedWeight({ params }: JsonObject): number | undefined {
  const own = (params ?? {}) as JsonObject;
  return own.implicitPrefs === true ? numberOr(own.unobservedWeight, 1) : undefined;
}

function numberOr(value: Json | undefined, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}

function deviationOf(metadata: JsonObject): number {
  return numberOr(metadata.ratingDeviation, Number.NaN);
}

function lambdaOf(params: JsonObject, given: Json | undefined): number {
  const lambda = numberOr(given, numberOr(params.regParam, Number.NaN));
  if (Number.isNaN(lambda))
    throw new UsageError('the model does not contain the λ of its training', {
      advice: 'Give regParam',
    });
  if (lambda >= 0 && Number.isFinite(lambda)) return lambda;
  throw new UsageError(`regParam (λ) must be a number of 0 or more, got ${lambda}`);
}

/** The offset o that is added to the diagonal of each user's equations, in the scale of the ratings. */
function offsetOf(params: JsonObject, metadata: JsonObject): number {
  const offset = numberOr(params.regOffset, 0);
  if (!(offset > 0)) return 0;
  const deviation = deviationOf(metadata);
  if (!Number.isNaN(deviation)) return offset * deviation;
  throw new DataError(
    'the model was trained with regOffset, but does not contain the deviation of its ratings',
    { phase: 'fold-in', advice: 'Train it again with this release' },
  );
}

/** Ratings of users whose factors are to be computed (folded in), reduced to items that the model knows. */
interface KnownRatings extends LaterRatings {
  /** Users with at least one such rating, ascending. */
  readonly users: KeyColumn;
  /** Number of users without a rating of a known item, and number of ratings of unknown items. */
  readonly withoutItems: number;
  readonly coldRatings: number;
  /** Number of users who are not to be solved. */
  readonly left: number;
}

/**
 * Removes ratings of unknown items from a block, in place, and users for whom `isLeft` is true. `users` and
 * `items` are the block's own ids; the result's columns are positions in the model.
 */
export function knownRatings(
  {
    users,
    items,
    byUser,
    isLeft = () => false,
  }: {
    readonly users: KeyColumn;
    readonly items: KeyColumn;
    readonly byUser: RatingBlock;
    readonly isLeft?: (row: number) => boolean;
  },
  model: FactorModel,
  { implicit }: UserRule,
): KnownRatings {
  const positions = lookupOf(model.items).positionsOf(items);
  const { rows, offsets, indices, values } = byUser;
  const columnOf = new Uint32Array(keyCount(items)).fill(UNKNOWN_KEY);
  const known = positions.filter((position) => position !== UNKNOWN_KEY);
  let columns = 0;
  positions.forEach(
    (position, item) => (columnOf[item] = position === UNKNOWN_KEY ? UNKNOWN_KEY : columns++),
  );
  const kept = sharedArray(Int32Array, rows + 1);
  const rowOf: number[] = [];
  let next = 0;
  let [left, leftRatings] = [0, 0];
  for (let row = 0; row < rows; row++) {
    const start = next;
    if (isLeft(row)) {
      left++;
      leftRatings += offsets[row + 1] - offsets[row];
      continue;
    }
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const column = columnOf[indices[k]];
      // In implicit data, a rating of 0 is the same as no rating.
      if (column === UNKNOWN_KEY || (implicit !== undefined && values[k] === 0)) continue;
      indices[next] = column;
      values[next++] = values[k];
    }
    if (next === start) continue;
    rowOf.push(row);
    kept[rowOf.length] = next;
  }
  const coldRatings = indices.length - next - leftRatings;
  const block = {
    ref: partitionRef(dataSetName('known-ratings')),
    rows: rowOf.length,
    ratings: next,
    offsets: kept.subarray(0, rowOf.length + 1),
    indices: indices.subarray(0, next),
    values: values.subarray(0, next),
  };
  return {
    users: takeKeys(users, rowOf),
    block,
    items: known,
    withoutItems: rows - left - rowOf.length,
    coldRatings,
    left,
  };
}

const STAGE = 'fold-in';

/**
 * Ratings of users who are added to a trained model. Columns of the block are indices into `items`, which
 * holds positions in the model.
 */
export interface LaterRatings {
  readonly block: RatingBlock;
  /** Ascending. */
  readonly items: Uint32Array;
  /**
   * What attributes predict of each user, to which the users are drawn, in the layout of the model's users.
   * Default: zeros.
   */
  readonly priors?: Float32Array | undefined;
}

/** The item factors of a model, which stay fixed, and the rule by which users are computed from them. */
export interface FixedItems {
  readonly model: ItemRows;
  /** Number of ratings of each item, needed for weights by `bm25`, and where items have no ratings. */
  readonly itemCounts: Uint32Array | undefined;
  readonly rule: UserRule;
  /** Returns the Gram matrix of gramOfItems; present for implicit data. */
  readonly gram: ((signal: AbortSignal) => Promise<Float32Array>) | undefined;
}

/** Factors of users in the layout of the model: [x], or with biases [x, β + μ, 1]; of items [θ, 1, γ]. */
export interface SolvedUsers {
  readonly values: Float32Array;
  /** The block's row of each solved user. Rows without a finite solution are left out. */
  readonly rows: readonly number[];
}

/** The weight of pairs without a rating, and the number of ratings of each item. */
export interface GramWeights {
  readonly unobserved: number;
  readonly counts?: Uint32Array | undefined;
}

/**
 * The Gram matrix Σ θ_v θ_vᵀ of all items, which the equations of implicit data contain. Items without ratings,
 * whose factors follow from their attributes, took no part in the training, and take none here.
 */
export async function gramOfItems(
  { itemFactors, rank }: Pick<FactorModel, 'rank' | 'itemFactors'>,
  { unobserved, counts }: GramWeights,
  ctx: ExecutionContext,
): Promise<Float32Array> {
  const rated = counts?.includes(0)
    ? takeRows(
        itemFactors,
        rank,
        Uint32Array.from(counts.keys()).filter((item) => counts[item] > 0),
      )
    : itemFactors;
  return gramOf(rated, { rank, weight: unobserved }, deviceOf(rank, ctx.executor), ctx);
}

const ratedOf = new WeakMap<Uint32Array, number>();

/** The number of items with ratings, which the Gram matrix and λ's weight count; all if the counts are unknown. */
function ratedItems({ model, itemCounts }: FixedItems): number {
  if (itemCounts === undefined) return model.items;
  const rated = ratedOf.get(itemCounts) ?? itemCounts.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0);
  ratedOf.set(itemCounts, rated);
  return rated;
}

/**
 * Computes the factors of the users in a block, with the item factors fixed. The equations A x = b of each
 * user are solved to a residual of at most 1e-5 of b. Runs on the device that training would use, and above
 * the rank that GPUs solve, on the CPU. For implicit data, the ratings are overwritten by their weights.
 */
export async function solveUsers(
  ratings: LaterRatings,
  fixed: FixedItems,
  ctx: ExecutionContext,
): Promise<SolvedUsers> {
  const { rule, model } = fixed;
  if (ratings.block.rows === 0) return { values: new Float32Array(0), rows: [] };
  const { rank, mean } = rule;
  const device = deviceOf(rank, ctx.executor);
  const block = weighted(ratings, fixed);
  const rows: GivenRows = {
    block,
    fixed: await model.read(ratings.items, { first: 0, count: rank }, ctx.signal),
    ...(mean === undefined ? {} : { fixedBiases: await biasesOf(ratings.items, fixed, ctx) }),
    ...drawnTo(ratings, fixed),
    ...(fixed.gram && { gram: await fixed.gram(ctx.signal), columns: ratedItems(fixed) }),
  };
  const isDrawn = rows.prior !== undefined;
  const solver = { ...solverOf(rank, device), ...(await kernelFor({ block, isDrawn }, rule, device, ctx)) };
  const solved = await solveRows(rows, { stage: STAGE, rule, solver, device }, ctx);
  return modelRows(solved.factors, solved.biases, rule, model.rank);
}

/** The users' priors as the solver takes them: factors, and biases without μ. */
function drawnTo(
  { block: { rows }, priors }: Pick<LaterRatings, 'block' | 'priors'>,
  { model, rule }: Pick<FixedItems, 'model' | 'rule'>,
): Pick<GivenRows, 'prior' | 'priorBias'> {
  if (priors === undefined) return {};
  const { rank, mean } = rule;
  const all = Uint32Array.from({ length: rows }, (_, row) => row);
  const columnsOf = (first: number, count: number) => takeRows(priors, model.rank, all, { first, count });
  const biases = mean === undefined ? undefined : columnsOf(biasColumn(rule).solved, 1);
  biases?.forEach((bias, row) => (biases[row] = bias - (mean ?? 0)));
  return { prior: columnsOf(0, rank), priorBias: biases };
}

/** The parts of a score without μ and the item's bias: see sharesOf. */
export interface ScoreShares {
  /** Of each rating. */
  readonly ratings: readonly number[];
  /** Of the user's prior; 0 without one. */
  readonly prior: number;
}

/**
 * Explains a score: the contribution of each rating of one user to the predicted score of an item (Hu, Koren
 * and Volinsky 2008, section 5). The contribution of a rating with target t of item v is t φ_vᵀ A⁻¹ φ. Here A
 * is the matrix of the user's equations, φ is the feature vector of the asked item, and φ_v of the rated one:
 * the factors θ_v, followed by 1 if the model has biases. A⁻¹ φ is computed as a user's factors: all targets
 * are set to 0, and a further rating with vector φ, weight 0 and target 1 makes the right-hand side equal to
 * φ. A prior a adds S a to the right-hand side, with the regularization S of A's diagonal, so that it
 * contributes aᵀ S A⁻¹ φ; a user without ratings is a. Undefined if the result is not finite.
 */
export async function sharesOf(
  ratings: LaterRatings,
  asked: number,
  fixed: FixedItems,
  ctx: ExecutionContext,
): Promise<ScoreShares | undefined> {
  const { rule, model } = fixed;
  const { items } = ratings;
  const { rank: f, mean, implicit } = rule;
  const rank = f + (mean === undefined ? 0 : 1);
  const { alpha, base, unobserved } = implicit ?? { alpha: 1, base: 1, unobserved: 0 };
  const { values } = weighted(ratings, fixed);
  const columns = { first: 0, count: rank };
  const features = await model.read(Uint32Array.of(...items, asked), columns, ctx.signal);
  const sizes = values.map((value) => (implicit ? -alpha * Math.abs(value) : -1));
  const positive = values.reduce((count, value) => count + (value > 0 ? 1 : 0), 0);
  const n = implicit ? positive + (base === 0 ? unobserved * ratedItems(fixed) : 0) : values.length;
  const shift = rule.lambda * n ** (rule.exponent ?? 1) + (rule.offset ?? 0);
  const biasShift = (rule.biasLambda ?? 0) * n + (rule.damping ?? 0);
  const { prior, priorBias } = drawnTo(ratings, fixed);
  const drawnBy = (row: ArrayLike<number>, [factor, bias]: readonly [number, number]) => {
    let sum = bias * (priorBias?.[0] ?? 0) * (row[f] ?? 0);
    for (let i = 0; i < f; i++) sum += factor * (prior?.[i] ?? 0) * row[i];
    return sum;
  };
  if (items.length === 0) return { ratings: [], prior: drawnBy(features, [1, 1]) };
  const gram = (await fixed.gram?.(ctx.signal)) ?? emptyGram(rank);
  // Only the last diagonal element belongs to the bias: corrects it, since biases are regularized differently
  // from factors.
  if (rank > f) gram[rank * rank - 1] = biasShift - shift;
  const { factors } = await solveRows(
    { block: rowOf(Float32Array.of(...sizes, NO_WEIGHT)), fixed: features, gram },
    {
      stage: STAGE,
      rule: { rank, lambda: shift, exponent: 0, implicit: { alpha: 1, base: 1, unobserved: 0 } },
      // With a bias, rows have one feature more.
      solver: rank > MAXIMUM_FORMED_RANK + 1 ? matrixFree : exact,
      device: deviceOf(f, ctx.executor),
    },
    ctx,
  );
  if (!factors.every(Number.isFinite)) return undefined;
  const biases = mean === undefined ? undefined : await biasesOf(items, fixed, ctx);
  const shares = Array.from(values, (value, k) => {
    const target = implicit
      ? value > 0
        ? base + alpha * value
        : 0
      : value - (mean ?? 0) - (biases?.[k] ?? 0);
    let share = 0;
    for (let i = 0; i < rank; i++) share += features[k * rank + i] * factors[i];
    return target * share;
  });
  return { ratings: shares, prior: drawnBy(factors, [shift, biasShift]) };
}

/**
 * A weight so small that adding it does not change the ratings' weights, but large enough that float32 can
 * represent its square root.
 */
const NO_WEIGHT = 2 ** -60;

/** A block with a single user, with one column for each value. */
export function rowOf(values: ArrayLike<number>): RatingBlock {
  return {
    ref: partitionRef(dataSetName('row')),
    rows: 1,
    ratings: values.length,
    offsets: Int32Array.of(0, values.length),
    indices: Uint32Array.from(values, (_, k) => k),
    values: Float32Array.from(values),
  };
}

/** The columns of a model with biases that have those of the rows that are solved, and of the fixed side. */
function biasColumn({ rank, solves }: UserRule) {
  const [users, items] = [rank, rank + 1];
  return solves === 'items' ? { solved: items, fixed: users } : { solved: users, fixed: items };
}

/** The biases of items. */
function biasesOf(
  positions: Uint32Array,
  { model, rule }: FixedItems,
  ctx: ExecutionContext,
): Promise<Float32Array> {
  return model.read(positions, { first: biasColumn(rule).fixed, count: 1 }, ctx.signal);
}

/** Replaces ratings by the weights of implicit data. */
function weighted(
  { block, items }: LaterRatings,
  { rule: { weight, solves }, itemCounts }: FixedItems,
): RatingBlock {
  const ofColumn = (column: number) => itemCounts?.[items[column]] ?? 0;
  const ofRow = (_: number, row: number) => block.offsets[row + 1] - block.offsets[row];
  if (weight) weighBlock(block, weight, solves === 'items' ? ofRow : ofColumn);
  return block;
}

/** Solved users in the layout of the model's user factors, without users whose solution is not finite. */
function modelRows(
  factors: Float32Array,
  biases: Float32Array | undefined,
  rule: UserRule,
  width: number,
): SolvedUsers {
  const { rank, mean = 0 } = rule;
  const column = biasColumn(rule);
  const count = factors.length / rank;
  const rows: number[] = [];
  const values = sharedArray(Float32Array, count * width);
  for (let row = 0; row < count; row++) {
    // Checks all numbers of the row at once: a sum is finite only if all its terms are.
    let sum = biases?.[row] ?? 0;
    const at = rows.length * width;
    for (let k = 0; k < rank; k++) sum += values[at + k] = factors[row * rank + k];
    if (!Number.isFinite(sum)) continue;
    if (biases) {
      values[at + column.solved] = biases[row] + mean;
      values[at + column.fixed] = 1;
    }
    rows.push(row);
  }
  return { values: values.subarray(0, rows.length * width), rows };
}

/**
 * With at least this number of features, conjugate gradients (CG) are faster than an exact solve: starting at
 * x = 0, they reach the exact solve's residual in 4 to 9 steps with usual λ.
 */
const LEAST_SETTLING = 48;
/** A row for which CG has not reached that residual after this number of steps is solved exactly. */
const MOST_STEPS = 12;

/** Above MAXIMUM_FORMED_RANK no row is solved exactly, so CG takes more steps. */
const MOST_FREE_STEPS = 300;

/** The device that solves users of a model with this number of features. */
function deviceOf(rank: number, executor: Executor): Device {
  return rank > MAXIMUM_FORMED_RANK ? hostDevice(executor) : computeDevice(executor);
}

/**
 * The solver for users of a model with this number of features: conjugate gradients from LEAST_SETTLING on,
 * else exact.
 */
function solverOf(rank: number, { info }: Device): RowsSolver {
  if (rank > MAXIMUM_FORMED_RANK) return matrixFree;
  return rank >= LEAST_SETTLING && !info.choosesKernels ? settling : exact;
}

const settling: RowsSolver = { cgBelow: ALL_ROWS, cgSteps: MOST_STEPS, settles: true };
const matrixFree: RowsSolver = { ...settling, cgSteps: MOST_FREE_STEPS };
const exact: RowsSolver = { cgBelow: 0, cgSteps: 1 };

/** Asks a device that has several kernels for the solve to choose one. Empty for other devices. */
async function kernelFor(
  { block, isDrawn }: { readonly block: RatingBlock; readonly isDrawn: boolean },
  { rank, mean, implicit, nonnegative }: UserRule,
  { info }: Device,
  ctx: ExecutionContext,
) {
  if (!info.choosesKernels) return {};
  let largestRating = 0;
  for (const value of block.values) largestRating = Math.max(largestRating, Math.abs(value));
  const problem = {
    rank,
    solver: nonnegative ? 'nonnegative' : 'cholesky',
    cgSteps: 1,
    precision: 'f32',
    biases: mean !== undefined,
    rows: block.rows,
    columns: rank,
    ratings: block.ratings,
    iterations: 1,
    longest: longestRow(block),
    largestRating,
    ...(implicit ? { implicit: true } : {}),
    ...(isDrawn ? { prior: true } : {}),
  } as const;
  const task = { kernel: 'choose-update', inputs: {}, outputs: {}, params: problem } as const;
  return kernelOf((await runTask(ctx, STAGE, info.place, task)).values);
}

const SEARCH = 'search';

/**
 * The n best items for one user who is not in the model. Solves the user's factors as solveUsers does, and
 * searches, in one task: a single message to the thread that has the index of the items. Undefined if the
 * user's equations have no finite solution.
 */
export async function searchForUser(
  ratings: LaterRatings,
  fixed: FixedItems,
  index: SearchIndex,
  request: Omit<SearchRequest, 'query'>,
  ctx: ExecutionContext,
): Promise<Found | undefined> {
  const { rule } = fixed;
  const { rank } = rule;
  const device = computeDevice(ctx.executor);
  const { place, strideStep } = device.info;
  const block = weighted(ratings, fixed);
  const run = new TaskRun(ctx, SEARCH, place);
  const shifts = rule.implicit && shiftsOf(block, ratedItems(fixed), rule).columns.values;
  const gram = fixed.gram && run.send('gram', factorsOf(await fixed.gram(ctx.signal), rank));
  const { prior, priorBias } = drawnTo(ratings, fixed);
  const shape = { rows: block.ratings + 3, columns: rank, stride: factorStride(rank, strideStep) };
  run.task({
    kernel: 'search-for-row',
    inputs: { ...index, ...maskInput(run, request.mask), ...(gram && { gram }) },
    outputs: { rows: run.make(run.ref('rows'), shape) },
    params: {
      ...searchParams(request),
      rated: Array.from(ratings.items),
      values: Array.from(block.values),
      solving: solvingOf(rule, solverOf(rank, device)),
      shift: Number(shifts?.[0] ?? 0),
      ...(prior && { prior: { factors: Array.from(prior), bias: priorBias?.[0] ?? 0 } }),
    },
  });
  const [values] = await run.values('search-for-row');
  return values.solved ? { positions: values.items, scores: values.scores } : undefined;
}
