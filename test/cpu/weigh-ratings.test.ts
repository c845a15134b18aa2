import { expect, it } from 'vitest';
import { countPositive, countValues, sumWeights, weighRatings } from '../../cpu/tasks/implicit.ts';
import { type ValueWeight, weightOf } from '../../engine/numbers/value-index.ts';
import { sharedArray } from '../../engine/partition.ts';
import { ratingBlock, TestMemory } from './scope.ts';

const memory = new TestMemory('simd', 1);
const lengths = [0, 1, 5, 700, 0, 12_001, 3, 0];
const [rows, columns] = [lengths.length, 13_000];
const block = ratingBlock(lengths, columns, 5);
const { offsets, indices, values } = block.columns as {
  offsets: Int32Array;
  indices: Uint32Array;
  values: Float32Array;
};
for (let k = 0; k < values.length; k++) if (k % 5 === 0) values[k] *= k % 3 === 0 ? -1 : k % 7 === 0 ? 0 : 1;
const counts = Int32Array.from({ length: columns }, (_, item) => 1 + (item % 90));
const itemCounts = { layout: 'item-counts', rows: columns, columns: { counts } };
/** Ranges of rows, as tasks get them. */
const cuts = [
  { from: 0, to: 4 },
  { from: 4, to: rows },
];
const bm25: ValueWeight = { form: 'bm25', unit: 1.7, scale: 0.8, meanCount: 30 };
const log: ValueWeight = { form: 'log', unit: 1.7, scale: 0.8, meanCount: 30 };

it('counts ratings by sign, and adds to the counts of earlier blocks of columns', () => {
  const positive = sharedArray(Int32Array, rows).fill(10);
  const output = { positive: { layout: 'row-counts', rows, columns: { counts: positive } } };
  const found = cuts.map((range) => countPositive(memory.scope(range, { block, ...output }, {})).values);
  const own = lengths.map((_, row) => [...values.subarray(offsets[row], offsets[row + 1])]);
  expect([...positive]).toEqual(own.map((row) => 10 + row.filter((value) => value > 0).length));
  const total = (of: 'negative' | 'zero' | 'sum') => found.reduce((sum, one) => sum + (one?.[of] ?? NaN), 0);
  expect(total('negative')).toBe(values.filter((value) => value < 0).length);
  expect(total('zero')).toBe(values.filter((value) => value === 0).length);
  expect(total('sum')).toBe(values.reduce((sum, value) => sum + Math.max(value, 0), 0));
  expect(total('negative')).toBeGreaterThan(100);
  expect(total('zero')).toBeGreaterThan(100);
});

it('counts distinct ratings, or gives up when there are too many', () => {
  const [first, second] = cuts.map(
    (range) => countValues(memory.scope(range, { block }, {})).values?.distinct,
  );
  const all = new Map<number, number>();
  for (const [value, count] of [...(first ?? []), ...(second ?? [])])
    all.set(value, (all.get(value) ?? 0) + count);
  const expected = new Map<number, number>();
  for (const value of values) expected.set(value, (expected.get(value) ?? 0) + 1);
  expect([...all].sort()).toEqual([...expected].sort());
  const many = ratingBlock([70_000], 70_000, 5);
  (many.columns.values as Float32Array).forEach((_, k, array) => (array[k] = k + 1));
  expect(countValues(memory.scope({ from: 0, to: 1 }, { block: many }, {})).values).toEqual({
    distinct: null,
  });
});

it.each([
  { name: 'log', weight: log, by: 'users' },
  { name: 'bm25 by user', weight: bm25, by: 'users' },
  { name: 'bm25 by item', weight: bm25, by: 'items' },
] as const)('weighs ratings one by one, in place or not: $name', ({ weight, by }) => {
  const expected = Float32Array.from(values);
  for (let row = 0; row < rows; row++)
    for (let k = offsets[row]; k < offsets[row + 1]; k++)
      expected[k] = weightOf(weight, values[k], counts[by === 'items' ? row : indices[k]]);
  const run = (own: typeof block, weights: Float32Array) => {
    const output = { weights: { layout: 'weights', rows, columns: { values: weights } } };
    for (const range of cuts)
      weighRatings(
        memory.scope({ ...range, ...weight, rows: by }, { block: own, itemCounts, ...output }, {}),
      );
    return weights;
  };
  expect(run(block, sharedArray(Float32Array, values.length))).toEqual(expected);
  const copy = values.slice();
  expect(run({ ...block, columns: { ...block.columns, values: copy } }, copy)).toEqual(expected);
});

it.each([
  { name: 'logarithms', weight: null },
  { name: 'weights by bm25', weight: bm25 },
])('sums sizes within rows: $name', ({ weight }) => {
  const positive = {
    ...block,
    columns: { ...block.columns, values: values.map((value) => Math.abs(value) + 0.5) },
  };
  const sums = sharedArray(Float64Array, rows);
  const output = { rowSums: { layout: 'row-sums', rows, columns: { sums } } };
  const found = cuts.map(
    (range) =>
      sumWeights(memory.scope({ ...range, weight }, { block: positive, itemCounts, ...output }, {})).values,
  );
  const sizes = positive.columns.values;
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let k = offsets[row]; k < offsets[row + 1]; k++)
      sum += weight === null ? Math.log(sizes[k]) : weightOf(weight, sizes[k], counts[indices[k]]);
    expect(sums[row]).toBe(sum);
  }
  expect(Math.min(...found.map((one) => one?.least ?? NaN))).toBe(Math.min(...sizes));
  expect(Math.max(...found.map((one) => one?.most ?? NaN))).toBe(Math.max(...sizes));
});
