import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { nextTurn } from '../../engine/waits.ts';
import { columnSums, passOver } from '../ratings/parts-in-files.ts';
import {
  hostForm,
  type RowPointers,
  type RatingBlock,
  type Ratings,
  type RatingSides,
} from '../ratings/ratings.ts';
import { offsetsOf } from '../ratings/row-ranges.ts';
import type { ValuesOf } from '../tasks/tasks.ts';

/**
 * Damping of means: they are computed as if each item, and each user, had this number of additional ratings
 * equal to the mean. So means of few ratings are not extreme.
 */
export const DAMPING = { items: 25, users: 10 } as const;

/** Number of rows or columns with a rating, and of those with exactly one. */
export interface SideFacts {
  readonly rated: number;
  readonly single: number;
}

/** Facts about the values of ratings. */
interface ValueFacts {
  readonly ratings: number;
  /** μ */
  readonly mean: number;
  /** σ of the population. */
  readonly deviation: number;
  readonly least: number;
  readonly most: number;
  /** True if all ratings are whole numbers. */
  readonly whole: boolean;
}

/** Facts about the values of ratings, and about their users and items. */
export interface RatingShape extends ValueFacts {
  readonly users: SideFacts;
  readonly items: SideFacts;
}

/** Sums over the training ratings, computed once before training, for warnings and baselines. */
export interface RatingFacts extends RatingShape {
  readonly means: BlockMeans;
  /** Number of ratings of each column. */
  readonly columnCounts: Int32Array;
}

/**
 * The shape of ratings, and the items' damped means γ (formula at rowFacts), which the pass over the ratings
 * by item gives as well.
 */
export interface SortedFacts extends RatingShape {
  readonly columns: Float32Array;
}

/** Damped means by row and column of sorted ratings: r ≈ mean + rows[row] + columns[column]. */
export interface BlockMeans {
  readonly mean: number;
  readonly rows: Float32Array;
  readonly columns: Float32Array;
}

/**
 * Facts about ratings that are sorted both by user and by item, from one pass over the ratings by item. The
 * users' means need a second pass: sortedMeans.
 */
export async function sortedRatingFacts(
  { byUser, byItem }: RatingSides,
  ctx: ExecutionContext,
): Promise<SortedFacts> {
  const sums = sharedArray(Float64Array, byItem.rows);
  const values = await valueFacts(byItem, ctx, sums);
  const columns = sharedArray(Float32Array, byItem.rows);
  for (const { from, rows, offsets } of byItem.parts) {
    for (let row = 0; row < rows; row++) {
      const count = offsets[row + 1] - offsets[row];
      columns[from + row] = (sums[from + row] - count * values.mean) / (count + DAMPING.items);
    }
  }
  return { ...values, users: sideOf(byUser.parts), items: sideOf(byItem.parts), columns };
}

/**
 * Completes the damped means (formula at rowFacts): computes the users' means by a pass over the ratings by
 * user.
 */
export async function sortedMeans(
  byUser: Ratings,
  { mean, columns }: Pick<SortedFacts, 'mean' | 'columns'>,
  ctx: ExecutionContext,
): Promise<BlockMeans> {
  const means = { mean, rows: sharedArray(Float32Array, byUser.rows), columns };
  await fillRows(byUser, means, DAMPING.users, ctx);
  return means;
}

/**
 * Facts about ratings that are sorted by row only. Damped means are computed for items first, then for users
 * from the remainder:
 *
 *     γ_v = Σ_u (r_uv - μ) / (n_v + 25)        β_u = Σ_v (r_uv - μ - γ_v) / (n_u + 10)
 *
 * Here μ is the mean rating, and n_v and n_u are the numbers of ratings of item v and user u. `rowsAre`: the
 * side that the rows are. `given`: μ and means of earlier ratings, NaN for new rows and columns; given means
 * are kept. Sums are float64, and do not depend on the number of threads.
 */
export async function rowFacts(
  ratings: Ratings,
  columns: number,
  rowsAre: 'users' | 'items',
  given: BlockMeans | undefined,
  ctx: ExecutionContext,
): Promise<RatingFacts> {
  using _ = ctx.metrics.begin('look at ratings');
  const values = await valueFacts(ratings, ctx);
  const mean = given?.mean ?? values.mean;
  const means = {
    mean,
    rows: sharedArray(Float32Array, ratings.rows),
    columns: sharedArray(Float32Array, columns),
  };
  const rowsFirst = rowsAre === 'items';
  const ofRows = async () => {
    await fillRows(ratings, means, DAMPING[rowsAre], ctx);
    keep(given?.rows, means.rows);
  };
  if (rowsFirst) await ofRows();
  const { sums, counts } = await columnSums(ratings, columns, rowsFirst ? means : undefined, ctx);
  const damping = DAMPING[rowsFirst ? 'users' : 'items'];
  for (let column = 0; column < columns; column++)
    means.columns[column] =
      (sums[column] - (rowsFirst ? 0 : counts[column] * mean)) / (counts[column] + damping);
  keep(given?.columns, means.columns);
  if (!rowsFirst) await ofRows();
  const ofCounts = sideOf([{ rows: columns, offsets: offsetsOf(counts) }]);
  const [users, items] = rowsFirst ? [ofCounts, sideOf(ratings.parts)] : [sideOf(ratings.parts), ofCounts];
  return { ...values, users, items, means, columnCounts: counts };
}

/** Computes the means of the rows from μ and the means of the columns. */
async function fillRows(
  ratings: Ratings,
  { mean, rows, columns }: BlockMeans,
  damping: number,
  ctx: ExecutionContext,
): Promise<void> {
  const means = (values: Float32Array) => ({ layout: 'means', rows: values.length, columns: { values } });
  await passOver(ratings, ctx, ({ from, block }, give) => ({
    kernel: 'damped-means',
    inputs: { block: give('block', hostForm(block)), columnMeans: give('columnMeans', means(columns)) },
    outputs: { rowMeans: give('rowMeans', means(rows.subarray(from, from + block.rows))) },
    params: { mean, damping },
  }));
}

/** Replaces computed means by known ones (those that are not NaN). */
function keep(known: Float32Array | undefined, means: Float32Array): void {
  known?.forEach((mean, position) => {
    if (!Number.isNaN(mean)) means[position] = mean;
  });
}

/** Counts rows with ratings, from their pointers. */
function sideOf(parts: readonly RowPointers[]): SideFacts {
  let [rated, single] = [0, 0];
  for (const { rows, offsets } of parts) {
    for (let row = 0; row < rows; row++) {
      const count = offsets[row + 1] - offsets[row];
      if (count > 0) rated++;
      if (count === 1) single++;
    }
  }
  return { rated, single };
}

/**
 * Computes the statistics of the ratings' values in one pass. If `sums` is given, it receives the sum of each
 * row's ratings.
 */
async function valueFacts(ratings: Ratings, ctx: ExecutionContext, sums?: Float64Array): Promise<ValueFacts> {
  const slices = await passOver(ratings, ctx, ({ from, block }, give) => {
    const own = sums?.subarray(from, from + block.rows) ?? sharedArray(Float64Array, block.rows);
    return {
      kernel: 'sum-ratings',
      inputs: { block: give('block', hostForm(block)) },
      outputs: { rowSums: give('rowSums', { layout: 'row-sums', rows: block.rows, columns: { sums: own } }) },
      params: {},
    };
  });
  const { sum, least, most, whole, squares } = totalOf(slices);
  // If all ratings are equal, the mean is exactly that rating, without the rounding of a division.
  const [mean, deviation] =
    least === most ? [least, 0] : [sum / ratings.ratings, Math.sqrt(squares / ratings.ratings)];
  return { ratings: ratings.ratings, mean, deviation, least, most, whole };
}

/**
 * Merges the statistics of all slices, in order. A slice has the sum of squared differences from its own
 * mean; the merge corrects it for the difference between the means (Chan, Golub and LeVeque).
 */
function totalOf(slices: readonly ValuesOf<'sum-ratings'>[]): ValuesOf<'sum-ratings'> {
  return slices.reduce((all, one) => {
    const count = all.count + one.count;
    const between = one.mean - all.mean;
    const share = count === 0 ? 0 : one.count / count;
    return {
      sum: all.sum + one.sum,
      least: Math.min(all.least, one.least),
      most: Math.max(all.most, one.most),
      whole: all.whole && one.whole,
      count,
      mean: all.mean + between * share,
      squares: all.squares + one.squares + between * between * all.count * share,
    };
  });
}

/** Number of training ratings of each user and item of a model, by position, if known. */
export interface RowCounts {
  readonly users?: ArrayLike<number> | undefined;
  readonly items?: ArrayLike<number> | undefined;
}

/** True if a pair's user or item has no training rating: the model knows it by its attributes alone. */
export function isCold({ users, items }: RowCounts, user: number, item: number): boolean {
  return users?.[user] === 0 || items?.[item] === 0;
}

/** Root of the mean squared error, and mean absolute error. */
export type PairErrors = {
  readonly rmse: number;
  readonly mae: number;
};

/**
 * Errors of two simple predictors on the pairs on which a model is measured. If the model's errors are
 * larger, it has learned nothing.
 */
export type Baselines = {
  /** Predicts the mean of the training ratings for every pair. */
  readonly mean: PairErrors;
  /**
   * Predicts the mean, plus the mean deviation of the item's ratings from it, plus the mean deviation of the
   * user's ratings from both. Deviations are damped: see rowFacts.
   */
  readonly dampedMeans: PairErrors;
};

/** Damped means by position: r_uv ≈ mean + users[u] + items[v]. */
export interface DampedMeans {
  /** μ of the training ratings. */
  readonly mean: number;
  readonly users: Float32Array;
  readonly items: Float32Array;
}

/** Sums errors in float64. */
export class ErrorSums {
  #squared = 0;
  #absolute = 0;
  count = 0;

  add(error: number): void {
    this.#squared += error * error;
    this.#absolute += Math.abs(error);
    this.count++;
  }

  /** NaN if there were no errors. */
  errors(): PairErrors {
    return { rmse: Math.sqrt(this.#squared / this.count), mae: this.#absolute / this.count };
  }
}

/** Sums the errors of both predictors, pair by pair. */
export class BaselineSums {
  readonly #mean = new ErrorSums();
  readonly #damped = new ErrorSums();

  add(rating: number, mean: number, user: number, item: number): void {
    this.#mean.add(rating - mean);
    this.#damped.add(rating - mean - user - item);
  }

  baselines(): Baselines {
    return { mean: this.#mean.errors(), dampedMeans: this.#damped.errors() };
  }
}

/** Number of pairs after which other work of this thread gets a turn. */
const PIECE = 1 << 16;

/**
 * Measures both baselines on a block of other ratings of the same rows and columns; undefined if it is empty.
 * Lets other work of this thread run from time to time, such as a running training.
 */
export async function baselinesOf(
  { rows, ratings, offsets, indices, values }: RatingBlock,
  means: BlockMeans,
): Promise<Baselines | undefined> {
  if (ratings === 0) return undefined;
  const sums = new BaselineSums();
  let turn = PIECE;
  for (let row = 0; row < rows; row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++)
      sums.add(values[k], means.mean, means.rows[row], means.columns[indices[k]]);
    if (offsets[row + 1] < turn) continue;
    turn += PIECE;
    await nextTurn();
  }
  return sums.baselines();
}
