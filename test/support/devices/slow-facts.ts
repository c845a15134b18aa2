/** The facts of a block in float64 in its order: the twin of the facts that tasks find. */
import {
  type BlockMeans,
  DAMPING,
  type RatingFacts,
  type RatingShape,
  type SideFacts,
} from '../../../operators/evaluation/rating-facts.ts';
import type { RatingBlock } from '../../../operators/ratings/ratings.ts';

/**
 * Looks at a block in two passes. Damped means are the item's first, then the user's of what is left:
 *
 *     γ_v = Σ_u (r_uv - μ) / (n_v + 25)        β_u = Σ_v (r_uv - μ - γ_v) / (n_u + 10)
 *
 * `rowsAre` says which side the rows are. `given`: μ and means of earlier ratings, NaN for rows and columns
 * that are new; those stay as they are.
 */
export function ratingFacts(
  block: RatingBlock,
  columns: number,
  rowsAre: 'users' | 'items',
  given?: BlockMeans,
): RatingFacts {
  const { values, offsets, indices } = block;
  const sums = new RatingSums(columns);
  sums.add(block);
  if (rowsAre === 'users') {
    const means = sums.columnMeans(block.rows, given);
    fillRows(block, means, DAMPING.users);
    keep(given?.rows, means.rows);
    return { ...sums.shape('users'), means, columnCounts: sums.counts };
  }
  const means = {
    mean: given?.mean ?? sums.mean,
    rows: new Float32Array(block.rows),
    columns: new Float32Array(columns),
  };
  fillRows(block, means, DAMPING.items);
  keep(given?.rows, means.rows);
  const left = new Float64Array(columns);
  for (let row = 0; row < block.rows; row++) {
    const expected = means.mean + means.rows[row];
    for (let k = offsets[row]; k < offsets[row + 1]; k++) left[indices[k]] += values[k] - expected;
  }
  for (let column = 0; column < columns; column++)
    means.columns[column] = left[column] / (sums.counts[column] + DAMPING.users);
  keep(given?.columns, means.columns);
  return { ...sums.shape('items'), means, columnCounts: sums.counts };
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
    const means = {
      mean: given?.mean ?? this.mean,
      rows: new Float32Array(rows),
      columns: new Float32Array(this.counts.length),
    };
    for (let column = 0; column < this.counts.length; column++)
      means.columns[column] =
        (this.#sums[column] - this.counts[column] * means.mean) / (this.counts[column] + DAMPING.items);
    keep(given?.columns, means.columns);
    return means;
  }

  shape(rowsAre: 'users' | 'items'): RatingShape {
    const [least, most, mean] = [this.#least, this.#most, this.mean];
    const [ofRows, ofColumns] = [
      { ...this.#rows },
      sideFacts(this.counts.length, (column) => this.counts[column]),
    ];
    const [users, items] = rowsAre === 'users' ? [ofRows, ofColumns] : [ofColumns, ofRows];
    const deviation =
      least === most ? 0 : Math.sqrt(Math.max(0, this.#squares / this.#ratings - mean * mean));
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

function fillRows(
  { values, offsets, indices }: RatingBlock,
  { mean, rows, columns }: BlockMeans,
  damping: number,
): void {
  for (let row = 0; row < rows.length; row++) {
    let sum = 0;
    for (let k = offsets[row]; k < offsets[row + 1]; k++) sum += values[k] - mean - columns[indices[k]];
    rows[row] = sum / (offsets[row + 1] - offsets[row] + damping);
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
