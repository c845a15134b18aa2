import { expect, it } from 'vitest';
import { dampedMeans, sumRatings } from '../../../cpu/tasks/loading/rating-sums.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { ratingBlock, TestMemory } from '../scope.ts';

const memory = new TestMemory('simd', 1);
const lengths = [0, 1, 5, 32_768, 0, 32_769, (1 << 20) + 7, 3, 40_000, 0];
const [rows, columns] = [lengths.length, 900];
const block = ratingBlock(lengths, columns, 5);
const { offsets, indices, values } = block.columns as {
  offsets: Int32Array;
  indices: Uint32Array;
  values: Float32Array;
};

it('sums of ratings are those of all rows, for whole numbers and halves, of short rows and of rows that are summed in parts', () => {
  const sums = sharedArray(Float64Array, rows).fill(100);
  const found = sumRatings(
    memory.scope({ from: 0, to: rows }, { block, rowSums: { layout: 'sums', rows, columns: { sums } } }, {}),
  );
  // Multiples of 1/2, so that sums are exact in every order.
  const expected = lengths.map((_, row) =>
    values.subarray(offsets[row], offsets[row + 1]).reduce((sum, value) => sum + value, 100),
  );
  expect([...sums]).toEqual(expected);
  const sum = expected.reduce((all, own) => all + own - 100, 0);
  const mean = sum / values.length;
  const squares = values.reduce((all, value) => all + (value - mean) ** 2, 0);
  expect(found.values).toEqual({
    sum,
    least: 0.5,
    most: 5,
    whole: false,
    count: values.length,
    mean: expect.closeTo(mean, 10),
    squares: expect.closeTo(squares, 3),
  });
  const whole = { ...block, columns: { ...block.columns, values: values.map((value) => Math.ceil(value)) } };
  const ofWhole = sumRatings(
    memory.scope(
      { from: 1, to: 3 },
      { block: whole, rowSums: { layout: 'sums', rows, columns: { sums } } },
      {},
    ),
  );
  expect(ofWhole.values).toMatchObject({ whole: true, count: 6 });
  expect(
    sumRatings(
      memory.scope({ from: 0, to: 1 }, { block, rowSums: { layout: 'sums', rows, columns: { sums } } }, {}),
    ).values,
  ).toEqual({
    sum: 0,
    least: Number.POSITIVE_INFINITY,
    most: Number.NEGATIVE_INFINITY,
    whole: true,
    count: 0,
    mean: 0,
    squares: 0,
  });
});

it.each([columns, 4_000_000])(
  'damped means are those of a loop over the ratings, with %i columns',
  (count) => {
    const ofColumns = sharedArray(Float32Array, count);
    for (let column = 0; column < columns; column++) ofColumns[column] = column / 1000;
    const made = [
      [0, rows],
      [0, 4],
      [4, rows],
    ].map(([from, to]) => {
      const means = sharedArray(Float32Array, rows);
      const parts = {
        block,
        columnMeans: { layout: 'means', rows: count, columns: { values: ofColumns } },
        rowMeans: { layout: 'means', rows, columns: { values: means } },
      };
      dampedMeans(memory.scope({ from, to, mean: 3.1, damping: 10 }, parts, {}));
      return [...means.subarray(from, to)];
    });
    const expected = Float32Array.from(lengths, (length, row) => {
      let left = 0;
      for (let k = offsets[row]; k < offsets[row + 1]; k++) left += values[k] - 3.1 - ofColumns[indices[k]];
      return left / (length + 10);
    });
    expect(made[0]).toEqual([...expected]);
    expect([...made[1], ...made[2]]).toEqual([...expected]);
  },
);
