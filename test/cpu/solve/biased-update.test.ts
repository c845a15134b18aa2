import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../../cpu/handler.ts';
import { normalEquations } from '../../../cpu/reference/normal-equations.ts';
import { solveNonnegative } from '../../../cpu/reference/solvers.ts';
import { updateBiasedRow } from '../../../cpu/reference/update.ts';
import { CHUNK_RATINGS } from '../../../cpu/tasks/row-chunks.ts';
import { update } from '../../../cpu/tasks/update.ts';
import type { Partition } from '../../../engine/partition.ts';
import type { ExactSolver, RowRegularization } from '../../../operators/tasks/task-types.ts';
import { everyNth } from '../../support/deep.ts';
import {
  builds,
  centredRow,
  columnOf,
  liftedMatrix,
  ratingBlock,
  relativeDistance,
  rowOf,
  TestMemory,
} from '../scope.ts';

const exact = { cgBelow: 0, cgSteps: 0 };
const cg = (cgSteps: number) => ({ cgBelow: 2 ** 31 - 1, cgSteps });
const lengths = [0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 97, 300, 0];
const COLUMNS = 400;
const mean = 2.5;
const gamma = Float32Array.from({ length: COLUMNS }, (_, k) => Math.sin(k));

const lifted = (memory: TestMemory, rank: number) => liftedMatrix(memory, COLUMNS, rank);
const centred = (block: Partition, row: number) => centredRow(block, row, mean, gamma);

function run(
  memory: TestMemory,
  block: Partition,
  fixed: MatrixView,
  factors: MatrixView,
  params: RowRegularization & {
    readonly cgBelow: number;
    readonly cgSteps: number;
    readonly exact?: ExactSolver;
  },
  cuts: readonly number[] = [],
) {
  const bias = new Float32Array(block.rows).fill(Number.NaN);
  const edges = [0, ...cuts, block.rows];
  for (let k = 0; k + 1 < edges.length; k++) {
    const { values } = update(
      memory.scope(
        { ...params, from: edges[k], to: edges[k + 1], rank: fixed.columns, mean },
        { block, fixedBias: columnOf(gamma), bias: columnOf(bias) },
        { fixed, previous: factors, factors },
      ),
    );
    expect(values?.badRow).toBe(-1);
  }
  return bias;
}

describe.each(builds)('update with biases and %s', (build) => {
  describe.each([
    [{ lambda: 0.05 }],
    [{ lambda: 0.05, exponent: 0.5, offset: 7, damping: 4 }],
    [{ lambda: 0, offset: 0.5, damping: 2 }],
    [{ lambda: 0, offset: 2 }],
  ] as const)('and regularization %o', (regularization: RowRegularization) => {
    it.each(everyNth([1, 8, 10, 63, 64, 128], 2, 1))(
      'solves factors and biases of rows of every kind, rank %i',
      (rank) => {
        const memory = new TestMemory(build);
        const theta = lifted(memory, rank);
        const block = ratingBlock(lengths, COLUMNS, 2);
        for (const solver of [exact, cg(4)]) {
          const factors = memory.matrix(lengths.length, rank, 3);
          const before = memory.values(factors).slice();
          const biases = run(memory, block, theta, factors, { ...solver, ...regularization });
          lengths.forEach((n, row) => {
            const at = row * factors.stride;
            const { lambda, exponent = 1, offset = 0, damping = 0 } = regularization;
            const shifts = { shift: lambda * n ** exponent + offset, ownShift: lambda * n + damping };
            const twin = updateBiasedRow(
              memory.values(theta),
              theta.stride,
              rank,
              centred(block, row),
              shifts,
              solver === exact,
              Float64Array.from(before.subarray(at, at + rank)),
              solver.cgSteps,
            );
            const found = [...memory.values(factors).subarray(at, at + rank), biases[row]];
            if (n === 0) return expect(found).toEqual(found.map(() => 0));
            expect(
              relativeDistance(found, twin!),
              `row of ${n}, ${solver === exact ? 'exact' : 'cg'}`,
            ).toBeLessThan(1e-3);
          });
        }
      },
    );
  });

  it('gives the same bits for any cut of the rows into tasks, and solves rows longer than a chunk', () => {
    const memory = new TestMemory(build);
    const theta = lifted(memory, 12);
    const all = [9, 2 * CHUNK_RATINGS + 33, 50, CHUNK_RATINGS];
    const block = ratingBlock(all, COLUMNS, 2);
    for (const solver of [exact, cg(16)]) {
      const [whole, parts] = [memory.matrix(4, 12, 3), memory.matrix(4, 12, 3)];
      const params = { ...solver, lambda: 0.05, offset: 3, damping: 4 };
      const biases = run(memory, block, theta, whole, params);
      expect(run(memory, block, theta, parts, params, [1, 2])).toEqual(biases);
      expect(memory.values(parts)).toEqual(memory.values(whole));
      const twin = updateBiasedRow(
        memory.values(theta),
        theta.stride,
        12,
        centred(block, 1),
        { shift: 0.05 * all[1] + 3, ownShift: 0.05 * all[1] + 4 },
        true,
        new Float64Array(12),
        0,
      )!;
      expect(
        relativeDistance(
          [...memory.values(whole).subarray(theta.stride, theta.stride + 12), biases[1]],
          twin,
        ),
      ).toBeLessThan(1e-4);
    }
  });

  it('keeps factors at 0 or above and leaves the biases free', () => {
    const memory = new TestMemory(build);
    const [rank, n] = [6, 200];
    const theta = lifted(memory, rank);
    const block = ratingBlock([n], COLUMNS, 2);
    const factors = memory.matrix(1, rank, 3);
    const [bias] = run(memory, block, theta, factors, {
      ...exact,
      lambda: 0.05,
      damping: 4,
      exact: 'nonnegative',
    });
    const x = memory.values(factors).subarray(0, rank);
    expect(Math.min(...x)).toBe(0);
    // β is the best for x, and x for β.
    const ratings = centred(block, 0);
    const errors = ratings.values.map(
      (value, k) =>
        value -
        x.reduce(
          (sum, element, i) => sum + element * memory.values(theta)[ratings.indices[k] * theta.stride + i],
          0,
        ),
    );
    expect(bias).toBeCloseTo(errors.reduce((sum, error) => sum + error, 0) / (1.05 * n + 4), 4);
    const problem = normalEquations(
      memory.values(theta),
      theta.stride,
      rank,
      { ...ratings, values: ratings.values.map((value) => value - bias) },
      0.05,
    );
    expect(relativeDistance(x, solveNonnegative(problem)!)).toBeLessThan(1e-3);
  });
});

describe.each(builds)('update where float32 cancels, and %s', (build) => {
  it.each([
    [20, 300],
    [20, 12],
    [64, 40],
    [8, CHUNK_RATINGS + 5],
  ])('gives a finite solution of rank %i with %i ratings', (rank, n) => {
    const memory = new TestMemory(build);
    // Rows of θ that hardly differ, and ratings up to 350,000 with λ n far below A's rounding.
    const theta = memory.matrix(COLUMNS, rank, 1);
    const values = memory.values(theta);
    for (let row = 0; row < COLUMNS; row++)
      for (let k = 0; k < rank; k++)
        values[row * theta.stride + k] = 600 * Math.sin(k + 1) + values[row * theta.stride + k] * 0.01;
    const block = ratingBlock([n], COLUMNS, 2);
    (block.columns.values as Float32Array).forEach((value, k, all) => (all[k] = 70_000 * value));
    const factors = memory.matrix(1, rank, 3);
    const { values: outcome } = update(
      memory.scope(
        { ...exact, from: 0, to: 1, rank, lambda: 1e-4 },
        { block },
        { fixed: theta, previous: factors, factors },
      ),
    );
    expect(outcome?.badRow).toBe(-1);
    const { indices, values: ratings } = rowOf(block, 0);
    const x = memory.values(factors).slice(0, rank);
    const squares = (with_: ArrayLike<number>) =>
      Array.from(ratings).reduce(
        (sum, rating, k) =>
          sum +
          (rating -
            Array.from({ length: rank }, (_, i) => with_[i] * values[indices[k] * theta.stride + i]).reduce(
              (a, b) => a + b,
              0,
            )) **
            2,
        0,
      );
    expect(squares(x)).toBeLessThan(0.9 * squares(new Float64Array(rank)));
  });
});
