/**
 * Rows that are drawn to a prior. With x = a + y and β = β₀ + γ the problem is the one without a prior for the
 * ratings r - Θ a - β₀, and every solver takes the same way to its solution.
 */
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../../cpu/handler.ts';
import { CHUNK_RATINGS } from '../../../cpu/tasks/row-chunks.ts';
import { update } from '../../../cpu/tasks/update.ts';
import type { Partition } from '../../../engine/partition.ts';
import { builds, columnOf, liftedMatrix, ratingBlock, relativeDistance, TestMemory } from '../scope.ts';

const COLUMNS = 400;
const mean = 2.5;
const gamma = Float32Array.from({ length: COLUMNS }, (_, k) => Math.sin(k));
const lengths = [0, 1, 2, 7, 9, 31, 65, 97, 300, CHUNK_RATINGS + 33, 0];
const tiled = { from: 60, to: 500_000, tileRows: 64 };
const ALL = 2 ** 31 - 1;
const solvers = {
  'cholesky and dual systems': { cgBelow: 0, cgSteps: 0 },
  'few steps of CG': { cgBelow: ALL, cgSteps: 3 },
  'many steps of CG': { cgBelow: ALL, cgSteps: 24 },
  'CG tile by tile': { cgBelow: ALL, cgSteps: 4, tiled },
} as const;

interface Given {
  readonly block: Partition;
  readonly previous: MatrixView;
  readonly prior?: MatrixView;
  readonly priorBias?: Float32Array;
}

describe.each(builds)('update with a prior and %s', (build) => {
  const memory = new TestMemory(build, 64);

  const solve = (
    theta: MatrixView,
    { block, previous, prior, priorBias }: Given,
    params: object,
    biased: boolean,
    cuts: number[] = [],
  ) => {
    const factors = memory.matrix(block.rows, theta.columns, 5);
    const bias = new Float32Array(block.rows).fill(NaN);
    const biases = biased && { fixedBias: columnOf(gamma), bias: columnOf(bias) };
    const partitions = { block, ...biases, ...(priorBias && { priorBias: columnOf(priorBias) }) };
    const matrices = { fixed: theta, previous, factors, ...(prior && { prior }) };
    const edges = [0, ...cuts, block.rows];
    let sum = 0;
    for (let k = 0; k + 1 < edges.length; k++) {
      const own = { rank: theta.columns, cgBelow: 0, cgSteps: 0, lambda: 0.05, damping: 4, offset: 3, mean };
      const scope = memory.scope(
        { ...own, ...params, from: edges[k], to: edges[k + 1] },
        partitions,
        matrices,
      );
      const { badRow, objective = 0, objectives = [objective] } = update(scope).values!;
      expect(badRow).toBe(-1);
      sum += objectives.reduce((all, one) => all + one, 0);
    }
    return { x: memory.values(factors).slice(), bias, objective: sum };
  };

  describe.each([false, true])('biases: %s', (biased) => {
    it.each(Object.entries(solvers))(
      'solves with %s as without one for what the prior leaves',
      (_, params) => {
        for (const rank of [8, 10, 40]) {
          memory.reset();
          const theta = liftedMatrix(memory, COLUMNS, rank);
          const { stride } = theta;
          const block = ratingBlock(lengths, COLUMNS, 2);
          const [previous, prior, apart] = [3, 4, 3].map((seed) => memory.matrix(lengths.length, rank, seed));
          const priorBias = Float32Array.from(lengths, (_n, row) => (biased ? Math.cos(row) : 0));
          const [a, thetas] = [memory.values(prior), memory.values(theta)];
          memory.values(apart).forEach((value, k, all) => (all[k] = value - a[k]));
          const { offsets, indices, values } = block.columns as Record<string, Int32Array>;
          const left = Float32Array.from(values);
          const squares = [0, 0];
          lengths.forEach((_n, row) => {
            for (let k = offsets[row]; k < offsets[row + 1]; k++) {
              const column = indices[k];
              left[k] -= priorBias[row];
              for (let i = 0; i < rank; i++) left[k] -= a[row * stride + i] * thetas[column * stride + i];
              const level = biased ? mean + gamma[column] : 0;
              squares[0] += (values[k] - level) ** 2;
              squares[1] += (left[k] - level) ** 2;
            }
          });
          const given = { block, previous, prior, priorBias };
          const rest = { ...block, columns: { ...block.columns, values: left } };
          const found = solve(theta, given, params, biased);
          const twin = solve(theta, { block: rest, previous: apart }, params, biased);
          lengths.forEach((n, row) => {
            const of = (x: Float32Array) => x.subarray(row * stride, row * stride + rank);
            const expected = of(twin.x).map((value, i) => value + a[row * stride + i]);
            expect(relativeDistance(of(found.x), expected), `row of ${n}`).toBeLessThan(1e-3);
            if (n === 0) expect(of(found.x)).toEqual(of(a));
            if (biased) expect(found.bias[row]).toBeCloseTo(twin.bias[row] + priorBias[row], 3);
          });
          expect((found.objective + squares[0]) / (twin.objective + squares[1])).toBeCloseTo(1, 4);
          expect(solve(theta, given, params, biased, [3, 6, 9])).toEqual({
            ...found,
            objective: expect.closeTo(found.objective, 1) as number,
          });
        }
      },
    );
  });

  it('finds the minimum over x >= 0 of rows with a negative prior', () => {
    memory.reset();
    const theta = liftedMatrix(memory, COLUMNS, 10);
    const block = ratingBlock([20, 5], COLUMNS, 2);
    const [previous, prior] = [3, 4].map((seed) => memory.matrix(2, 10, seed, 4));
    const { x } = solve(theta, { block, previous, prior }, { exact: 'nonnegative' }, false);
    const { offsets, indices, values } = block.columns as Record<string, Int32Array>;
    for (const row of [0, 1]) {
      const shift = 0.05 * (offsets[row + 1] - offsets[row]) + 3;
      const at = (matrix: Float32Array, r: number, i: number) => matrix[r * theta.stride + i];
      for (let i = 0; i < 10; i++) {
        let gradient = shift * (at(x, row, i) - at(memory.values(prior), row, i));
        for (let k = offsets[row]; k < offsets[row + 1]; k++) {
          let error = -values[k];
          for (let j = 0; j < 10; j++) error += at(x, row, j) * at(memory.values(theta), indices[k], j);
          gradient += error * at(memory.values(theta), indices[k], i);
        }
        const own = at(x, row, i);
        expect(own).toBeGreaterThanOrEqual(0);
        if (own > 0) expect(gradient).toBeCloseTo(0, 2);
        else expect(gradient).toBeGreaterThan(-1e-2);
      }
    }
    expect(Math.min(...x)).toBe(0);
  });
});
