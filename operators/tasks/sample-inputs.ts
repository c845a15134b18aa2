/** Inputs of tasks made of random numbers, the same on every machine. */
import { fromHalves, toHalf } from '../../engine/numbers/half.ts';
import type { Partition } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';

/** A matrix whose elements `element` computes. */
export function factorsOf(
  rows: number,
  columns: number,
  element: (row: number, column: number) => number,
): Partition {
  const values = Float32Array.from({ length: rows * columns }, (_, at) =>
    element(Math.floor(at / columns), at % columns),
  );
  return { layout: 'factors', rows, columns: { values } };
}

/** A matrix of uniform elements in ±1 / √columns, so that products of two rows are at most about 1 / 3. */
export function randomFactors(rows: number, columns: number, seed: number): Partition {
  const draws = uniforms(rows * columns, seed);
  return factorsOf(rows, columns, (row, k) => (2 * draws[row * columns + k] - 1) / Math.sqrt(columns));
}

/** A matrix of whole numbers in [-most, most], so that products are exact and many are equal. */
export function wholeFactors(rows: number, columns: number, seed: number, most: number): Partition {
  const random = new CounterRandom(seed);
  return factorsOf(rows, columns, (row, k) => random.below(row * columns + k, 2 * most + 1) - most);
}

/** The matrix with its elements rounded to float16. */
export function roundedToHalf({ columns, ...matrix }: Partition): Partition {
  return { ...matrix, columns: { values: fromHalves(toHalf(columns.values as Float32Array)) } };
}

export function vectorOf(layout: string, values: Float32Array | Uint32Array): Partition {
  return { layout, rows: values.length, columns: { values } };
}

/** Random numbers in (0, 1), or from `least` on. */
export function uniforms(length: number, seed: number, least = 0): Float32Array {
  const random = new CounterRandom(seed);
  return Float32Array.from({ length }, (_, k) => random.uniform(k) + least);
}

/** A rating-block of rows with these columns; by default every value is 0. */
export function blockOf(
  rows: readonly ArrayLike<number>[],
  value: (rating: number) => number = () => 0,
): Partition {
  const offsets = new Int32Array(rows.length + 1);
  rows.forEach(({ length }, row) => (offsets[row + 1] = offsets[row] + length));
  const indices = new Uint32Array(offsets[rows.length]);
  rows.forEach((columns, row) => indices.set(columns, offsets[row]));
  const values = Float32Array.from(indices, (_, k) => value(k));
  return { layout: 'rating-block', rows: rows.length, columns: { offsets, indices, values } };
}

/**
 * A rating-block of rows of the given lengths with ratings 0.5 .. 5. Columns ascend within a row, and are
 * distinct where there are enough columns.
 */
export function randomBlock(lengths: readonly number[], columns: number, seed: number): Partition {
  const random = new CounterRandom(seed);
  const rows = lengths.map((length, row) => {
    const start = random.below(row, columns);
    const step = Math.max(1, Math.floor(columns / (length + 1)));
    return Uint32Array.from({ length }, (_, k) => (start + k * step) % columns).sort();
  });
  return blockOf(rows, (k) => 0.5 + 4.5 * random.uniform(k));
}

/** The columns of the ratings of a row of a block. */
export function columnsOf({ columns: { offsets, indices } }: Partition, row: number): Uint32Array {
  return (indices as Uint32Array).subarray(Number(offsets[row]), Number(offsets[row + 1]));
}
