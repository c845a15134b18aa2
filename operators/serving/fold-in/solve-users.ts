import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import type { Device } from '../../../engine/run/device.ts';
import { dataSetName, sharedArray } from '../../../engine/partition.ts';
import { weightedBlock } from '../../als/implicit/weighted-ratings.ts';
import { emptyGram, gramOf, type GivenRows, type RowsSolver, solveRows } from '../../als/rows/solve-rows.ts';
import { kernelOf } from '../../als/plan/half-iteration.ts';
import { ALL_ROWS } from '../../als/solver-choice.ts';
import { longestRow, type RatingBlock } from '../../ratings/rating-block.ts';
import { runTasks } from '../../tasks/run-tasks.ts';
import type { FactorModel } from '../factor-model.ts';
import type { UserRule } from './row-rule.ts';

const STAGE = 'fold-in';

/** Ratings of later users. The block's columns are numbers in `items`, positions in the model. */
export interface LaterRatings {
  readonly block: RatingBlock;
  /** Ascending. */
  readonly items: Uint32Array;
}

/** Items of a model, and the rule by which its users are solved from them. */
export interface FixedItems {
  readonly model: Pick<FactorModel, 'rank' | 'itemFactors'>;
  /** n_v of each item, for the weights of bm25. */
  readonly itemCounts: Uint32Array | undefined;
  readonly rule: UserRule;
  /** For implicit data: see gramOfItems. */
  readonly gram: (() => Promise<Float32Array>) | undefined;
}

/** Users in the form of the model ([x], or with biases [x, β + μ, 1]), and their rows of the block. */
export interface SolvedUsers {
  readonly values: Float32Array;
  /** Rows without a finite solution are left out. */
  readonly rows: readonly number[];
}

/** G of all items of a model of implicit data. */
export async function gramOfItems(
  { itemFactors, rank }: FixedItems['model'],
  { implicit }: UserRule,
  ctx: ExecutionContext,
): Promise<Float32Array> {
  const weight = implicit?.unobserved ?? 0;
  return gramOf(itemFactors, { rank, weight }, computeDevice(ctx.executor), ctx);
}

/**
 * Solves each row of a block to a residual of at most 1e-5 of b, with the items fixed. Runs on the device
 * that training would use. For implicit data, the ratings are overwritten by their weights.
 */
export async function solveUsers(
  ratings: LaterRatings,
  fixed: FixedItems,
  ctx: ExecutionContext,
): Promise<SolvedUsers> {
  const { rule, model } = fixed;
  if (ratings.block.rows === 0) return { values: new Float32Array(0), rows: [] };
  const { rank, mean } = rule;
  const device = computeDevice(ctx.executor);
  const block = weighted(ratings, fixed);
  const rows: GivenRows = {
    block,
    fixed: featuresOf(model, ratings.items, 0, rank),
    ...(mean === undefined ? {} : { fixedBiases: featuresOf(model, ratings.items, rank + 1, 1) }),
    ...(fixed.gram && { gram: await fixed.gram(), columns: itemsOf(model) }),
  };
  const solver = { ...solverOf(rank, device), ...(await kernelFor(block, rule, device, ctx)) };
  const solved = await solveRows(rows, { stage: STAGE, rule, solver, device }, ctx);
  return modelRows(solved.factors, solved.biases, rule, model.rank);
}

/**
 * The contribution of each rating of one user to the score of an item, t φ_vᵀ A⁻¹ φ (Hu, Koren and Volinsky
 * 2008, section 5); with a bias φ_v = [θ_v, 1], else θ_v. A⁻¹ φ is the solution for b = φ. To get this b,
 * the row is solved with all targets set to 0 and one more rating: its item's vector is φ, its weight 0 and
 * its target 1. Undefined if the result is not finite.
 */
export async function sharesOf(
  ratings: LaterRatings,
  asked: number,
  fixed: FixedItems,
  ctx: ExecutionContext,
): Promise<number[] | undefined> {
  const { rule, model } = fixed;
  const { items } = ratings;
  const { rank: f, mean, implicit } = rule;
  const rank = f + (mean === undefined ? 0 : 1);
  const { alpha, base, unobserved } = implicit ?? { alpha: 1, base: 1, unobserved: 0 };
  const { values } = weighted(ratings, fixed);
  const features = featuresOf(model, Uint32Array.of(...items, asked), 0, rank);
  const sizes = values.map((value) => (implicit ? -alpha * Math.abs(value) : -1));
  const positive = values.reduce((count, value) => count + (value > 0 ? 1 : 0), 0);
  const n = implicit ? positive + (base === 0 ? unobserved * itemsOf(model) : 0) : values.length;
  const shift = rule.lambda * n ** (rule.exponent ?? 1) + (rule.offset ?? 0);
  const gram = (await fixed.gram?.()) ?? emptyGram(rank);
  // The bias has another regularization than the factors.
  if (rank > f) gram[rank * rank - 1] = (rule.biasLambda ?? 0) * n + (rule.damping ?? 0) - shift;
  const { factors } = await solveRows(
    { block: rowOf(Float32Array.of(...sizes, NO_WEIGHT)), fixed: features, gram },
    {
      stage: STAGE,
      rule: { rank, lambda: shift, exponent: 0, implicit: { alpha: 1, base: 1, unobserved: 0 } },
      solver: exact,
      device: computeDevice(ctx.executor),
    },
    ctx,
  );
  if (!factors.every(Number.isFinite)) return undefined;
  const biases = mean === undefined ? undefined : featuresOf(model, items, f + 1, 1);
  return Array.from(values, (value, k) => {
    const target = implicit
      ? value > 0
        ? base + alpha * value
        : 0
      : value - (mean ?? 0) - (biases?.[k] ?? 0);
    let share = 0;
    for (let i = 0; i < rank; i++) share += features[k * rank + i] * factors[i];
    return target * share;
  });
}

/** A weight so small that adding it does not change the ratings' weights, but whose root is a float32. */
const NO_WEIGHT = 2 ** -60;

/** A block of one row, with one column for each value. */
export function rowOf(values: ArrayLike<number>): RatingBlock {
  return {
    ref: { name: dataSetName('row'), partition: 0, version: 0 },
    rows: 1,
    ratings: values.length,
    offsets: Int32Array.of(0, values.length),
    indices: Uint32Array.from(values, (_, k) => k),
    values: Float32Array.from(values),
  };
}

export function itemsOf({ itemFactors, rank }: FixedItems['model']): number {
  return itemFactors.length / rank;
}

/** `count` numbers of each of some items, from number `first` on. */
function featuresOf(
  { itemFactors, rank: width }: FixedItems['model'],
  positions: Uint32Array,
  first: number,
  count: number,
): Float32Array {
  const features = sharedArray(Float32Array, positions.length * count);
  positions.forEach((position, at) => {
    const from = position * width + first;
    for (let k = 0; k < count; k++) features[at * count + k] = itemFactors[from + k];
  });
  return features;
}

/** Replaces ratings by the weights of implicit data. */
export function weighted(
  { block, items }: LaterRatings,
  { rule: { weight }, itemCounts }: FixedItems,
): RatingBlock {
  const countAt = (_: number, column: number) => itemCounts?.[items[column]] ?? 0;
  return weight ? weightedBlock(block, weight, { countAt, keeps: false }) : block;
}

/** The finite solved rows, in the layout of a model's users. */
function modelRows(
  factors: Float32Array,
  biases: Float32Array | undefined,
  { rank, mean = 0 }: UserRule,
  width: number,
): SolvedUsers {
  const count = factors.length / rank;
  const rows: number[] = [];
  const values = sharedArray(Float32Array, count * width);
  for (let row = 0; row < count; row++) {
    // A sum is finite only if all terms are.
    let sum = biases?.[row] ?? 0;
    const at = rows.length * width;
    for (let k = 0; k < rank; k++) sum += values[at + k] = factors[row * rank + k];
    if (!Number.isFinite(sum)) continue;
    if (biases) {
      values[at + rank] = biases[row] + mean;
      values[at + rank + 1] = 1;
    }
    rows.push(row);
  }
  return { values: values.subarray(0, rows.length * width), rows };
}

/**
 * With at least this number of features, CG from x = 0 to an exact solve's residual (4 to 9 steps with usual
 * λ) costs less than the exact solve.
 */
const LEAST_SETTLING = 48;
/** If CG has not reached that residual after this number of steps, the row is solved exactly. */
const MOST_STEPS = 12;

/** The solver of users, by the number of features. */
export function solverOf(rank: number, { info }: Device): RowsSolver {
  return rank >= LEAST_SETTLING && !info.choosesKernels ? settling : exact;
}

const settling: RowsSolver = { cgBelow: ALL_ROWS, cgSteps: MOST_STEPS, settles: true };
const exact: RowsSolver = { cgBelow: 0, cgSteps: 1 };

/** The kernel, for a device that has several. */
async function kernelFor(
  block: RatingBlock,
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
  } as const;
  const task = { kernel: 'choose-update', inputs: {}, outputs: {}, params: problem } as const;
  return kernelOf((await runTasks(ctx, STAGE, info.place, [task]))[0]);
}
