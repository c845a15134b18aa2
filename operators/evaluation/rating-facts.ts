import type { RatingBlock } from '../ratings/rating-block.ts';
import { heldBlocks, type SortedRatings } from '../ratings/spilled-ratings.ts';

/** Ratings equal to the mean that each item and each user is given beside its own, so that a few ratings move its mean little. */
export const DAMPING = { items: 25, users: 10 } as const;

/** Rows or columns of a block. */
export interface SideFacts {
  /** Those with a rating, and those with exactly one. */
  readonly rated: number;
  readonly single: number;
}

/** The values of ratings, and the users and items that they are of. */
export interface RatingShape {
  readonly ratings: number;
  /** μ */
  readonly mean: number;
  /** σ of the population. */
  readonly deviation: number;
  readonly least: number;
  readonly most: number;
  /** True where all ratings are whole numbers. */
  readonly whole: boolean;
  readonly users: SideFacts;
  readonly items: SideFacts;
}

/** The training ratings, summed once before training: what warnings and baselines need. Sums are float64 in the block's order. */
export interface RatingFacts extends RatingShape {
  readonly means: BlockMeans;
  /** Ratings of each column. */
  readonly columnCounts: Int32Array;
}

/** Damped means by row and column of sorted ratings: r ≈ mean + rows[row] + columns[column]. */
export interface BlockMeans {
  readonly mean: number;
  readonly rows: Float32Array;
  readonly columns: Float32Array;
}

/**
 * Looks at ratings in memory in two passes, in the order of their rows. Damped means are the item's first, then the user's of what is left:
 *
 *     γ_v = Σ_u (r_uv - μ) / (n_v + 25)        β_u = Σ_v (r_uv - μ - γ_v) / (n_u + 10)
 *
 * `rowsAre` says which side the rows are. `given`: μ and means of earlier ratings, NaN for rows and columns that are new; those stay as they are.
 */
export function ratingFacts(ratings: SortedRatings, columns: number, rowsAre: 'users' | 'items', given?: BlockMeans): RatingFacts {
  const blocks = heldBlocks(ratings);
  const sums = new RatingSums(columns);
  for (const { block } of blocks) sums.add(block);
  const columnCounts = sums.counts;
  if (rowsAre === 'users') {
    const means = sums.columnMeans(ratings.rows, given);
    for (const { from, block } of blocks) fillRows(block, from, means, DAMPING.users);
    keep(given?.rows, means.rows);
    return { ...sums.shape('users'), means, columnCounts };
  }
  const means = { mean: given?.mean ?? sums.mean, rows: new Float32Array(ratings.rows), columns: new Float32Array(columns) };
  for (const { from, block } of blocks) fillRows(block, from, means, DAMPING.items);
  keep(given?.rows, means.rows);
  const left = new Float64Array(columns);
  for (const { from, block } of blocks) addLeft(block, from, means, left);
  for (let column = 0; column < columns; column++) means.columns[column] = left[column] / (columnCounts[column] + DAMPING.users);
  keep(given?.columns, means.columns);
  return { ...sums.shape('items'), means, columnCounts };
}

/** Sums over blocks of adjacent rows, in their order. */
class RatingSums {
  readonly counts: Int32Array;
  readonly #sums: Float64Array;
  readonly #rows = { rated: 0, single: 0 };
  #ratings = 0;
  #sum = 0;
  #squares = 0;
  #least = Number.POSITIVE_INFINITY;
  #most = Number.NEGATIVE_INFINITY;
  #whole = true;

  constructor(columns: number) {
    [this.counts, this.#sums] = [new Int32Array(columns), new Float64Array(columns)];
  }

  add({ rows, values, offsets, indices }: RatingBlock): void {
    const [counts, sums] = [this.counts, this.#sums];
    let [sum, squares, least, most] = [this.#sum, this.#squares, this.#least, this.#most];
    for (let k = 0; k < values.length; k++) {
      const value = values[k];
      sum += value;
      squares += value * value;
      if (value < least) least = value;
      if (value > most) most = value;
      sums[indices[k]] += value;
      counts[indices[k]]++;
    }
    [this.#sum, this.#squares, this.#least, this.#most] = [sum, squares, least, most];
    this.#ratings += values.length;
    this.#whole &&= areWhole(values);
    const { rated, single } = sideFacts(rows, (row) => offsets[row + 1] - offsets[row]);
    this.#rows.rated += rated;
    this.#rows.single += single;
  }

  /** Equal ratings have a mean without rounding. */
  get mean(): number {
    return this.#least === this.#most ? this.#least : this.#sum / this.#ratings;
  }

  /** The means of columns that are items, with zeros for `rows` rows. */
  columnMeans(rows: number, given: BlockMeans | undefined): BlockMeans {
    const means = { mean: given?.mean ?? this.mean, rows: new Float32Array(rows), columns: new Float32Array(this.counts.length) };
    for (let column = 0; column < this.counts.length; column++) means.columns[column] = (this.#sums[column] - this.counts[column] * means.mean) / (this.counts[column] + DAMPING.items);
    keep(given?.columns, means.columns);
    return means;
  }

  shape(rowsAre: 'users' | 'items'): RatingShape {
    const [least, most, mean] = [this.#least, this.#most, this.mean];
    const [ofRows, ofColumns] = [{ ...this.#rows }, sideFacts(this.counts.length, (column) => this.counts[column])];
    const [users, items] = rowsAre === 'users' ? [ofRows, ofColumns] : [ofColumns, ofRows];
    const deviation = least === most ? 0 : Math.sqrt(Math.max(0, this.#squares / this.#ratings - mean * mean));
    return { ratings: this.#ratings, mean, deviation, least, most, whole: this.#whole, users, items };
  }
}

/** Puts the means that are known, which are numbers, in place of those computed. */
function keep(known: Float32Array | undefined, means: Float32Array): void {
  known?.forEach((mean, position) => {
    if (!Number.isNaN(mean)) means[position] = mean;
  });
}

function areWhole(values: Float32Array): boolean {
  let k = 0;
  while (k < values.length && Math.trunc(values[k]) === values[k]) k++;
  return k === values.length;
}

/** The means of the rows of a block, whose first one is the row `from`. */
function fillRows({ rows: count, values, offsets, indices }: RatingBlock, from: number, { mean, rows, columns }: BlockMeans, damping: number): void {
  for (let row = 0; row < count; row++) {
    let sum = 0;
    for (let k = offsets[row]; k < offsets[row + 1]; k++) sum += values[k] - mean - columns[indices[k]];
    rows[from + row] = sum / (offsets[row + 1] - offsets[row] + damping);
  }
}

/** Adds what the means of the rows leave of the ratings of each column. */
function addLeft({ rows: count, values, offsets, indices }: RatingBlock, from: number, { mean, rows }: BlockMeans, left: Float64Array): void {
  for (let row = 0; row < count; row++) {
    const expected = mean + rows[from + row];
    for (let k = offsets[row]; k < offsets[row + 1]; k++) left[indices[k]] += values[k] - expected;
  }
}

function sideFacts(length: number, count: (position: number) => number): SideFacts {
  let [rated, single] = [0, 0];
  for (let position = 0; position < length; position++) {
    if (count(position) > 0) rated++;
    if (count(position) === 1) single++;
  }
  return { rated, single };
}
