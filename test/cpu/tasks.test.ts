import * as fc from 'fast-check';
import type { MatrixView } from '../../cpu/handler.ts';
import { describe, expect, it } from 'vitest';
import {
  errors,
  predictPair,
  weightedNorm as weightedNormTwin,
  type Block,
} from '../../cpu/reference/errors.ts';
import { topN as topNTwin } from '../../cpu/reference/top-n.ts';
import { predict } from '../../cpu/tasks/predict.ts';
import { CHUNK_RATINGS } from '../../cpu/tasks/row-chunks.ts';
import { squaredError } from '../../cpu/tasks/squared-error.ts';
import { topN } from '../../cpu/tasks/top-n.ts';
import { weightedNorm } from '../../cpu/tasks/weighted-norm.ts';
import { builds, ratingBlock, TestMemory } from './scope.ts';
import { shuffled } from '../support/ratings.ts';
import { sampleSize } from '../support/deep.ts';

describe.each(builds)('tasks with %s', (build) => {
  it.each([1, 10, 64])('squared-error and weighted-norm sum over rows, rank %i', (rank) => {
    const memory = new TestMemory(build);
    const lengths = [0, 1, 2, 3, 4, 5, 700, 0, CHUNK_RATINGS + 5, 9];
    const rowFactors = memory.matrix(lengths.length, rank, 1);
    const columnFactors = memory.matrix(500, rank, 2);
    const block = ratingBlock(lengths, 500, 3);
    const arrays = block.columns as unknown as Block;
    for (const [from, to] of [
      [0, lengths.length],
      [3, 7],
      [8, 9],
      [0, 0],
    ]) {
      const scope = memory.scope(
        { from, to, rank },
        { block },
        { rowFactors, columnFactors, factors: rowFactors },
      );
      const got = squaredError(scope).values as { squared: number; absolute: number; count: number };
      const { stride } = rowFactors;
      const twin = errors(memory.values(rowFactors), memory.values(columnFactors), stride, arrays, from, to);
      expect(got.count).toBe(twin.count);
      expect(Math.abs(got.squared - twin.squared)).toBeLessThanOrEqual(1e-6 * twin.squared);
      expect(Math.abs(got.absolute - twin.absolute)).toBeLessThanOrEqual(1e-6 * twin.absolute);
      for (const exponent of [undefined, 0, 0.5]) {
        const norms = weightedNorm(
          memory.scope(
            { from, to, rank, ...(exponent === undefined ? {} : { exponent }) },
            { block },
            { factors: rowFactors },
          ),
        ).values!;
        const expected = weightedNormTwin(
          memory.values(rowFactors),
          stride,
          arrays.offsets,
          from,
          to,
          exponent,
        );
        for (const name of ['sum', 'plain'] as const)
          expect(Math.abs(norms[name] - expected[name])).toBeLessThanOrEqual(1e-12 * expected[name]);
      }
    }
  });

  it.each([10])('predict gives a product for each pair, rank %i', (rank) => {
    const memory = new TestMemory(build);
    const [rowFactors, columnFactors] = [memory.matrix(40, rank, 1), memory.matrix(30, rank, 2)];
    for (const count of [0, 1, 65_536, 65_537]) {
      const rows = Uint32Array.from({ length: count }, (_, k) => (k * 7) % 40);
      const columns = Uint32Array.from({ length: count }, (_, k) => (k * 11) % 30);
      const pairs = { layout: 'pairs', rows: count, columns: { rows, columns } };
      const outcome = predict(memory.scope({ rank }, { pairs }, { rowFactors, columnFactors }));
      const { values } = outcome.partitions!.predictions.columns;
      expect(values.length).toBe(count);
      // Without the padding, from host memory.
      const inHost = (view: MatrixView) => ({
        layout: 'factor-rows',
        rows: view.rows,
        columns: {
          values: Float32Array.from(
            { length: view.rows * rank },
            (_, k) => memory.values(view)[Math.floor(k / rank) * view.stride + (k % rank)],
          ),
        },
      });
      expect(
        predict(
          memory.scope(
            { rank },
            { pairs, rowFactors: inHost(rowFactors), columnFactors: inHost(columnFactors) },
            {},
          ),
        ).partitions!.predictions.columns.values,
      ).toEqual(values);
      for (let k = 0; k < count; k += 997) {
        const twin = predictPair(
          memory.values(rowFactors),
          rows[k],
          memory.values(columnFactors),
          columns[k],
          rowFactors.stride,
        );
        expect(Math.abs((values[k] as number) - twin)).toBeLessThan(1e-6);
      }
    }
  });

  it('top-n finds the best columns, ties by lower column or number, exclusions left out', () => {
    const memory = new TestMemory(build, 16);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 11 }),
        fc.integer({ min: 1, max: 60 }),
        fc.constantFrom(1, 2, 10, 70),
        fc.constantFrom(1, 3, 8, 17),
        fc.boolean(),
        fc.boolean(),
        fc.integer({ min: 0, max: 1000 }),
        (rows, columns, n, rank, exclude, ordered, seed) => {
          memory.reset();
          // Small whole numbers: products are exact and ties are common.
          const [rowFactors, columnFactors] = [
            memory.matrix(rows, rank, seed, 2.5),
            memory.matrix(columns, rank, seed + 1, 2.5),
          ];
          for (const matrix of [rowFactors, columnFactors])
            memory.values(matrix).forEach((v, k, all) => (all[k] = Math.round(v)));
          const block = ratingBlock(
            Array.from({ length: rows }, (_, r) => (r * 5) % 40),
            columns,
            seed,
          );
          const [from, to] = [seed % rows, rows];
          const order = Uint32Array.from(
            shuffled(
              Array.from({ length: columns }, (_, column) => column),
              seed,
            ),
          );
          const itemOf = (column: number) => (ordered ? order[column] : column);
          const scope = memory.scope(
            { from, to, rank, n },
            {
              ...(exclude ? { exclude: block } : {}),
              ...(ordered
                ? { order: { layout: 'column-order', rows: columns, columns: { values: order } } }
                : {}),
            },
            { rowFactors, columnFactors },
          );
          const { items, scores } = topN(scope).partitions!.top.columns;
          const { offsets, indices } = block.columns as unknown as Block;
          for (let row = from; row < to; row++) {
            const all = new Float64Array(columns);
            for (let column = 0; column < columns; column++)
              all[itemOf(column)] = predictPair(
                memory.values(rowFactors),
                row,
                memory.values(columnFactors),
                column,
                rowFactors.stride,
              );
            const expected = topNTwin(
              all,
              n,
              new Set(exclude ? indices.subarray(offsets[row], offsets[row + 1]) : []),
            );
            const at = (row - from) * n;
            const missing = Array.from<number>({ length: n - expected.length });
            expect([...items.subarray(at, at + n)]).toEqual([...expected, ...missing.fill(0xffffffff)]);
            expect([...scores.subarray(at, at + n)]).toEqual([
              ...expected.map((column) => all[column]),
              ...missing.fill(NaN),
            ]);
          }
        },
      ),
      { numRuns: sampleSize(120), seed: 2 },
    );
  });

  it('top-n works over many tiles and groups of rows', () => {
    const memory = new TestMemory(build);
    const [rowFactors, columnFactors] = [memory.matrix(1100, 24, 1), memory.matrix(2500, 24, 2)];
    const block = ratingBlock(
      Array.from({ length: 1100 }, () => 300),
      2500,
      3,
    );
    const scope = memory.scope(
      { from: 0, to: 1100, rank: 24, n: 20 },
      { exclude: block },
      { rowFactors, columnFactors },
    );
    const { items, scores } = topN(scope).partitions!.top.columns;
    const { indices } = block.columns as unknown as Block;
    for (const row of [0, 511, 512, 1099]) {
      const all = Float64Array.from({ length: 2500 }, (_, c) =>
        predictPair(memory.values(rowFactors), row, memory.values(columnFactors), c, 24),
      );
      const expected = topNTwin(all, 20, new Set(indices.subarray(row * 300, row * 300 + 300)));
      expect([...items.subarray(row * 20, row * 20 + 20)]).toEqual(expected);
      expect(
        [...scores.subarray(row * 20, row * 20 + 20)].every(
          (score, k) => Math.abs((score as number) - all[expected[k]]) < 1e-6,
        ),
      ).toBe(true);
    }
  });

  it('top-n refuses a list that does not fit', () => {
    const memory = new TestMemory(build);
    const [rowFactors, columnFactors] = [memory.matrix(1, 8, 1), memory.matrix(5, 8, 2)];
    const scope = memory.scope({ from: 0, to: 1, rank: 8, n: 2 ** 20 }, {}, { rowFactors, columnFactors });
    expect(() => topN(scope)).toThrow(/at most 524288/);
  });
});
