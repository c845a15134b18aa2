import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../cpu/handler.ts';
import {
  type ReferenceSteps,
  type ReferenceSums,
  stepInOrder,
  type VisitedRatings,
} from '../../cpu/reference/sgd.ts';
import { CHUNK_RATINGS } from '../../cpu/tasks/row-chunks.ts';
import { dealRatings, shuffleRatings } from '../../cpu/tasks/sgd/order.ts';
import { sgdBlock } from '../../cpu/tasks/sgd/sgd-block.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import { everyNth } from '../support/deep.ts';
import { builds, ratingBlock, relativeDistance, TestMemory } from './scope.ts';

type Columns = { readonly offsets: Int32Array; readonly indices: Uint32Array; readonly values: Float32Array };

/** The ratings of a block row by row, its rows counted from `rowStart`. */
function visited(block: Partition, rowStart = 0): VisitedRatings & { readonly rows: number[] } {
  const { offsets, indices, values } = block.columns as Columns;
  const rows = Array.from({ length: block.rows }, (_, row) =>
    Array.from({ length: offsets[row + 1] - offsets[row] }, () => rowStart + row),
  ).flat();
  return { rows, columns: indices, values };
}

function listOf(ratings: VisitedRatings): Partition {
  const count = ratings.values.length;
  const columns = {
    rows: sharedArray(Uint32Array, count),
    columns: sharedArray(Uint32Array, count),
    values: sharedArray(Float32Array, count),
  };
  columns.rows.set(ratings.rows);
  columns.columns.set(ratings.columns);
  columns.values.set(ratings.values);
  return { layout: 'rating-list', rows: count, columns };
}

interface Matrices {
  readonly rows: MatrixView;
  readonly columns: MatrixView;
  readonly rowSums: MatrixView;
  readonly columnSums: MatrixView;
}

/** Small random factors, with biases the 1s of both sides, and no sums yet. */
function matrices(
  memory: TestMemory,
  rows: number,
  columns: number,
  rank: number,
  biases: boolean,
): Matrices {
  const features = rank + (biases ? 2 : 0);
  const [p, q] = [memory.matrix(rows, features, 1, 0.5), memory.matrix(columns, features, 2, 0.5)];
  if (biases) {
    for (let row = 0; row < rows; row++) memory.values(p)[row * p.stride + 1] = 1;
    for (let column = 0; column < columns; column++) memory.values(q)[column * q.stride] = 1;
  }
  const sums = (count: number): MatrixView => ({
    pointer: memory.copyIn(new Float32Array(count)),
    rows: count,
    columns: 1,
    stride: 1,
  });
  return { rows: p, columns: q, rowSums: sums(rows), columnSums: sums(columns) };
}

/** The twin's outcome from the matrices as they are. */
function twin(
  memory: TestMemory,
  { rows, columns, rowSums, columnSums }: Matrices,
  ratings: VisitedRatings,
  steps: ReferenceSteps,
  adaptive: boolean,
) {
  const [p, q] = [rows, columns].map((matrix) => Float64Array.from(memory.values(matrix)));
  const sums: ReferenceSums = {
    rows: new Float64Array(rowSums.rows),
    columns: new Float64Array(columnSums.rows),
  };
  stepInOrder(p, q, rows.stride, ratings, steps, adaptive ? sums : undefined);
  return { p, q, sums };
}

const steps = (rank: number, biases: boolean): ReferenceSteps => ({
  rank,
  biases,
  rate: 0.02,
  rowLambda: 0.05,
  columnLambda: 0.11,
});

describe.each(builds)('sgd-block with %s', (build) => {
  describe.each([
    ['plain steps', false],
    ['AdaGrad', true],
  ])('%s', (_, adaptive) => {
    it.each(everyNth([1, 2, 7, 8, 10, 16, 31, 32, 40, 64, 100, 128, 256, 512], 3))(
      'steps a block as its twin does, rank %i',
      (rank) => {
        for (const biases of [false, true]) {
          if (biases && rank === 512) continue;
          const memory = new TestMemory(build);
          const block = ratingBlock([0, 3, 1, 8, 0, 40, 2], 30, 5);
          const all = matrices(memory, 20, 30, rank, biases);
          const expected = twin(memory, all, visited(block, 9), steps(rank, biases), adaptive);
          const outcome = sgdBlock(
            memory.scope({ ...steps(rank, biases), adaptive, rowStart: 9 }, { block }, { ...all }),
          );
          expect(outcome.rows).toBe(54);
          expect(relativeDistance(memory.values(all.rows), expected.p)).toBeLessThan(1e-5);
          expect(relativeDistance(memory.values(all.columns), expected.q)).toBeLessThan(1e-5);
          expect(relativeDistance(memory.values(all.rowSums), expected.sums.rows)).toBeLessThan(1e-4);
          expect(relativeDistance(memory.values(all.columnSums), expected.sums.columns)).toBeLessThan(1e-4);
        }
      },
    );

    it('keeps the 1s of biases and the padding as they are, in every bit', () => {
      const memory = new TestMemory(build);
      const block = ratingBlock([30, 30], 20, 6);
      const all = matrices(memory, 2, 20, 5, true);
      sgdBlock(memory.scope({ ...steps(5, true), adaptive }, { block }, { ...all }));
      for (const [matrix, one] of [
        [all.rows, 1],
        [all.columns, 0],
      ] as const) {
        const values = memory.values(matrix);
        for (let row = 0; row < matrix.rows; row++) {
          expect(values[row * 8 + one]).toBe(1);
          expect(values[row * 8 + 7]).toBe(0);
        }
      }
    });

    it('visits the batches of a list in the given order, each in its own', () => {
      const memory = new TestMemory(build);
      const ratings = visited(ratingBlock([20, 30, 17], 25, 8));
      const order = sharedArray(Uint32Array, 7);
      order.set([3, 6, 0, 5, 1, 2, 4]);
      const all = matrices(memory, 3, 25, 12, true);
      const places = [...order]
        .slice(1, 6)
        .flatMap((batch) => Array.from({ length: Math.min(10, 67 - 10 * batch) }, (_, k) => 10 * batch + k));
      const inOrder = {
        rows: places.map((k) => ratings.rows[k]),
        columns: places.map((k) => ratings.columns[k]),
        values: places.map((k) => ratings.values[k]),
      };
      const expected = twin(memory, all, inOrder, steps(12, true), adaptive);
      const inputs = {
        block: listOf(ratings),
        order: { layout: 'batch-order', rows: 7, columns: { order } },
      };
      const outcome = sgdBlock(
        memory.scope({ ...steps(12, true), adaptive, from: 1, to: 6, batch: 10 }, inputs, { ...all }),
      );
      expect(outcome.rows).toBe(places.length);
      expect(relativeDistance(memory.values(all.rows), expected.p)).toBeLessThan(1e-5);
      expect(relativeDistance(memory.values(all.columns), expected.q)).toBeLessThan(1e-5);
    });
  });

  it('steps rows longer than a chunk, and stops between chunks when cancelled', () => {
    const memory = new TestMemory(build);
    const block = ratingBlock([3, CHUNK_RATINGS + 5, 2], 50, 5);
    const all = matrices(memory, 3, 50, 8, false);
    // The rounding of 1 - γλ accumulates over the steps on one row: without λ they stay near the twin's.
    const small = { ...steps(8, false), rate: 1e-3, rowLambda: 0, columnLambda: 0 };
    const expected = twin(memory, all, visited(block), small, false);
    sgdBlock(memory.scope({ ...small, adaptive: false }, { block }, { ...all }));
    expect(relativeDistance(memory.values(all.rows), expected.p)).toBeLessThan(1e-4);
    let looks = 0;
    const outcome = sgdBlock(
      memory.scope({ ...small, adaptive: false }, { block }, { ...all }, () => ++looks > 1),
    );
    expect(outcome.rows).toBe(3);
  });
});

describe('deal-ratings and shuffle-ratings', () => {
  it('give every rating once, in the same order for any cut into tasks, and another for another seed', () => {
    const block = ratingBlock([40, 0, 33, 90, 1, 7], 60, 4);
    const memory = new TestMemory('simd', 10);
    const total = 171;
    const buckets = 8;
    const shuffled = (seed: number, cuts: readonly number[]) => {
      const nothing = new Float32Array(total);
      const list = listOf({ rows: nothing, columns: nothing, values: nothing });
      const ranges = (count: number) =>
        [0, ...cuts.filter((cut) => cut < count)].map((from, i, all) => ({ from, to: all[i + 1] ?? count }));
      for (const range of ranges(Math.ceil(total / buckets)))
        dealRatings(memory.scope({ ...range, buckets, seed }, { block, list }, {}));
      for (const range of ranges(buckets))
        shuffleRatings(memory.scope({ ...range, buckets, seed }, { list }, {}));
      const { rows, columns, values } = list.columns as {
        rows: Uint32Array;
        columns: Uint32Array;
        values: Float32Array;
      };
      return Array.from(rows, (row, k) => `${row},${columns[k]},${values[k]}`);
    };
    const first = shuffled(1, []);
    const ratings = visited(block);
    const sorted = Array.from(
      ratings.rows,
      (row, k) => `${row},${ratings.columns[k]},${ratings.values[k]}`,
    ).sort();
    expect([...first].sort()).toEqual(sorted);
    expect(shuffled(1, [3, 5, 11])).toEqual(first);
    expect(shuffled(2, [])).not.toEqual(first);
    // In a shuffled list almost no rating is followed by its neighbour in the block.
    expect(
      first.filter((rating, k) => k > 0 && rating.split(',')[0] === first[k - 1].split(',')[0]).length,
    ).toBeLessThan(total / 2);
  });
});
