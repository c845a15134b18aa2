/** The kernels of implicit ALS against float64, with both builds. */
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../cpu/handler.ts';
import { gramMatrix, implicitEquations } from '../../cpu/reference/normal-equations.ts';
import { conjugateGradient, solveNonnegative } from '../../cpu/reference/solvers.ts';
import { gram } from '../../cpu/tasks/implicit.ts';
import { CHUNK_RATINGS } from '../../cpu/tasks/row-chunks.ts';
import { updateImplicit } from '../../cpu/tasks/update.ts';
import { sharedArray } from '../../engine/partition.ts';
import {
  builds,
  columnOf,
  norm,
  ratingBlock,
  relativeDistance,
  residual,
  rowOf,
  TestMemory,
} from './scope.ts';

const weights = { alpha: 2.5, base: 1 };
const exact = { cgBelow: 0, cgSteps: 0 };
const cg = (cgSteps: number) => ({ cgBelow: 2 ** 31 - 1, cgSteps });

function gramOf(
  memory: TestMemory,
  theta: MatrixView,
  weight: number,
  cuts: readonly number[] = [],
): MatrixView {
  const stride = theta.stride;
  const view: MatrixView = {
    pointer: memory.allocate(stride * stride * 4),
    rows: stride,
    columns: theta.columns,
    stride,
  };
  const edges = [0, ...cuts, theta.columns];
  for (let k = 0; k + 1 < edges.length; k++)
    gram(
      memory.scope(
        { from: edges[k], to: edges[k + 1], rank: theta.columns, weight },
        {},
        { factors: theta, gram: view },
      ),
    );
  return view;
}

const shiftsOf = (rows: number) =>
  columnOf(
    sharedArray(Float32Array, rows).map((_, row) => 0.1 * (row + 1)),
    'row-shifts',
  );

describe.each(builds)('implicit kernels with %s', (build) => {
  it.each([1, 33, 130])('compute the Gram matrix, and the same bits by any slices, rank %i', (rank) => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(3000, rank, 1);
    const expected = gramMatrix(memory.values(theta), theta.stride, rank, theta.rows, 0.3);
    const whole = memory.values(gramOf(memory, theta, 0.3)).slice();
    const largest = Math.max(...expected);
    for (let i = 0; i < rank; i++)
      for (let j = 0; j < rank; j++)
        expect(Math.abs(whole[i * theta.stride + j] - expected[i * rank + j])).toBeLessThan(1e-6 * largest);
    expect(
      memory.values(gramOf(memory, theta, 0.3, rank > 16 ? [8, 24].filter((cut) => cut < rank) : [])),
    ).toEqual(whole);
  });

  it.each([1, 17, 64])('solve rows of every kind, and the same bits for any cut, rank %i', (rank) => {
    const lengths = [0, 1, 2, 7, 8, 9, 31, 64, 130, 700, 0];
    const memory = new TestMemory(build);
    const theta = memory.matrix(800, rank, 1);
    const block = ratingBlock(lengths, theta.rows, 2);
    const values = block.columns.values as Float32Array;
    for (let k = 2; k < values.length; k += 5) values[k] = -values[k];
    const shifts = shiftsOf(lengths.length);
    const dense = gramMatrix(memory.values(theta), theta.stride, rank, theta.rows, 1);
    const gramView = gramOf(memory, theta, 1);
    for (const solver of [
      exact,
      cg(3),
      { ...exact, exact: 'nonnegative' as const },
      { ...cg(40), settles: true },
      { ...cg(1), settles: true },
    ]) {
      const start = memory.matrix(lengths.length, rank, 3);
      if ('settles' in solver) memory.values(start).fill(0);
      const run = (cuts: readonly number[]) => {
        const factors = memory.matrix(lengths.length, rank, 4);
        const edges = [0, ...cuts, lengths.length];
        for (let k = 0; k + 1 < edges.length; k++) {
          const { values: told } = updateImplicit(
            memory.scope(
              { ...weights, ...solver, from: edges[k], to: edges[k + 1], rank },
              { block, shifts },
              { fixed: theta, previous: start, factors, gram: gramView },
            ),
          );
          expect(told.badRow).toBe(-1);
        }
        return memory.values(factors);
      };
      const solved = run([]);
      expect(run([3, 8])).toEqual(solved);
      lengths.forEach((length, row) => {
        const x = solved.slice(row * theta.stride, (row + 1) * theta.stride);
        expect(norm(x.subarray(rank))).toBe(0);
        if (length === 0) return expect(norm(x)).toBe(0);
        const { matrix, bias } = implicitEquations(
          dense,
          memory.values(theta),
          theta.stride,
          rank,
          rowOf(block, row),
          weights,
          shifts.columns.values[row] as number,
        );
        if ('exact' in solver)
          return expect(relativeDistance(x, solveNonnegative({ matrix, bias })!)).toBeLessThan(1e-3);
        if (solver === exact || 'settles' in solver)
          return expect(residual(matrix, x, bias)).toBeLessThan(solver === exact ? 1e-5 : 1.5e-5);
        const from = Float64Array.from(
          memory.values(start).subarray(row * theta.stride, row * theta.stride + rank),
        );
        expect(relativeDistance(x, conjugateGradient(matrix, bias, from, solver.cgSteps))).toBeLessThan(1e-3);
      });
    }
  });

  it('solve exactly where weights of millions leave nothing of the shift in float32', () => {
    const rank = 24;
    const memory = new TestMemory(build);
    const theta = memory.matrix(16, rank, 1);
    const lengths = [12, CHUNK_RATINGS + 1, 3];
    const block = ratingBlock(lengths, theta.rows, 2);
    const shifts = shiftsOf(lengths.length);
    const heavy = { alpha: 1e8, base: 1 };
    const dense = gramMatrix(memory.values(theta), theta.stride, rank, theta.rows, 1);
    const factors = memory.matrix(lengths.length, rank, 3);
    const { values } = updateImplicit(
      memory.scope(
        { ...heavy, ...exact, from: 0, to: lengths.length, rank },
        { block, shifts },
        { fixed: theta, previous: factors, factors, gram: gramOf(memory, theta, 1) },
      ),
    );
    expect(values.badRow).toBe(-1);
    lengths.forEach((_, row) => {
      const x = memory.values(factors).slice(row * theta.stride, row * theta.stride + rank);
      const { matrix, bias } = implicitEquations(
        dense,
        memory.values(theta),
        theta.stride,
        rank,
        rowOf(block, row),
        heavy,
        shifts.columns.values[row] as number,
      );
      expect(residual(matrix, x, bias)).toBeLessThan(1e-4);
    });
  });
});
