import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../cpu/handler.ts';
import { normalEquations } from '../../cpu/reference/normal-equations.ts';
import { updateRow } from '../../cpu/reference/update.ts';
import { CHUNK_RATINGS } from '../../cpu/tasks/row-chunks.ts';
import { update } from '../../cpu/tasks/update.ts';
import type { Partition } from '../../engine/partition.ts';
import {
  builds,
  norm,
  ratingBlock,
  relativeDistance,
  residual,
  rowOf,
  rowsOfMatrix,
  TestMemory,
} from './scope.ts';
import { everyNth, sampleSize } from '../support/deep.ts';

const exact = { cgBelow: 0, cgSteps: 0 };
const cg = (cgSteps: number) => ({ cgBelow: 2 ** 31 - 1, cgSteps });
/** CG to the residual of an exact solve; solves exactly where `cgSteps` steps do not reach it. */
const settling = (cgSteps: number) => ({ ...cg(cgSteps), settles: true });
type Solver = typeof exact & { readonly settles?: boolean };

function run(
  memory: TestMemory,
  block: Partition,
  fixed: MatrixView,
  factors: MatrixView,
  lambda: number,
  solver: Solver,
  cuts: number[] = [],
) {
  const edges = [0, ...cuts, block.rows];
  let badRow = -1;
  for (let k = 0; k + 1 < edges.length; k++) {
    const params = { ...solver, from: edges[k], to: edges[k + 1], rank: fixed.columns, lambda };
    const outcome = update(memory.scope(params, { block }, { fixed, previous: factors, factors }));
    expect(outcome.rows).toBe(edges[k + 1] - edges[k]);
    if (badRow < 0) badRow = outcome.values!.badRow as number;
  }
  return badRow;
}

describe.each(builds)('update with %s', (build) => {
  it.each(everyNth([1, 7, 8, 10, 32, 63, 64, 100, 128, 200, 512], 3))(
    'solves rows of every kind, rank %i',
    (rank) => {
      const lengths = [0, 1, 2, 7, 8, 9, 31, 32, 33, 48, 49, 0, 96, 97, 130, 300, 0];
      const lambda = 0.05;
      const memory = new TestMemory(build);
      const theta = memory.matrix(400, rank, 1);
      const block = ratingBlock(lengths, theta.rows, 2);
      const equations = lengths.map((_, row) =>
        normalEquations(memory.values(theta), theta.stride, rank, rowOf(block, row), lambda),
      );
      for (const solver of [exact, cg(3), settling(12), settling(1)] as Solver[]) {
        const factors = memory.matrix(lengths.length, rank, 3);
        if (solver.settles) memory.values(factors).fill(0);
        const before = rowsOfMatrix(memory, factors);
        expect(run(memory, block, theta, factors, lambda, solver)).toBe(-1);
        rowsOfMatrix(memory, factors).forEach((x, row) => {
          expect(norm(x.subarray(rank))).toBe(0);
          const ratings = rowOf(block, row);
          if (lengths[row] === 0) return expect(norm(x)).toBe(0);
          if (solver === exact || solver.settles) {
            const { matrix, bias } = equations[row];
            // At rank 1 the single number of b cancels, down to its rounding.
            return expect(residual(matrix, x, bias)).toBeLessThan(
              solver === exact ? 1e-5 : rank === 1 ? 1e-4 : 1.5e-5,
            );
          }
          const start = Float64Array.from(before[row].subarray(0, rank));
          const twin = updateRow(
            memory.values(theta),
            theta.stride,
            rank,
            ratings,
            lambda,
            false,
            start,
            solver.cgSteps,
          );
          expect(relativeDistance(x, twin!)).toBeLessThan(1e-3);
        });
      }
    },
  );

  it.each([1, 8, 20, 64])('solves rows around the length of a chunk, and longer, rank %i', (rank) => {
    const lengths = [3, CHUNK_RATINGS - 1, 5, CHUNK_RATINGS, CHUNK_RATINGS + 1, 0, 4];
    if (rank < 20) lengths.push(3 * CHUNK_RATINGS + 40);
    const memory = new TestMemory(build);
    const theta = memory.matrix(50, rank, 1);
    const block = ratingBlock(lengths, theta.rows, 2);
    const twins = lengths.map((_, row) =>
      normalEquations(memory.values(theta), theta.stride, rank, rowOf(block, row), 0.1),
    );
    for (const solver of [exact, cg(rank + 4), settling(2)] as Solver[]) {
      const factors = memory.matrix(lengths.length, rank, 3);
      if (solver.settles) memory.values(factors).fill(0);
      expect(run(memory, block, theta, factors, 0.1, solver)).toBe(-1);
      rowsOfMatrix(memory, factors).forEach((x, row) => {
        if (lengths[row] === 0) return expect(norm(x)).toBe(0);
        expect(residual(twins[row].matrix, x, twins[row].bias)).toBeLessThan(1e-5);
      });
    }
  });

  it('gives the same bits for any cut of the rows into tasks', () => {
    const memory = new TestMemory(build, 16);
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(40), fc.nat(3000), fc.constant(0)), { minLength: 1, maxLength: 12 }),
        fc.constantFrom(3, 16, 40),
        fc.constantFrom(exact, cg(2), { cgBelow: 20, cgSteps: 3 }, settling(3)),
        fc.array(fc.nat(12), { maxLength: 4 }),
        (lengths, rank, solver, cuts) => {
          memory.reset();
          const theta = memory.matrix(60, rank, 1);
          const block = ratingBlock(lengths, theta.rows, 2);
          const [whole, parts] = [
            memory.matrix(lengths.length, rank, 3),
            memory.matrix(lengths.length, rank, 3),
          ];
          run(memory, block, theta, whole, 0.1, solver);
          run(
            memory,
            block,
            theta,
            parts,
            0.1,
            solver,
            cuts.filter((cut) => cut <= lengths.length).sort((a, b) => a - b),
          );
          expect(new Uint32Array(memory.values(parts).slice().buffer)).toEqual(
            new Uint32Array(memory.values(whole).slice().buffer),
          );
        },
      ),
      { numRuns: sampleSize(25), seed: 1 },
    );
  });

  it('gives the same bits for a row too long for a chunk beside any others', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(60, 12, 1);
    const block = ratingBlock([9, 2 * CHUNK_RATINGS + 33, 50], theta.rows, 2);
    for (const solver of [exact, cg(4)]) {
      const [whole, parts] = [memory.matrix(3, 12, 3), memory.matrix(3, 12, 3)];
      run(memory, block, theta, whole, 0.1, solver);
      run(memory, block, theta, parts, 0.1, solver, [1, 2]);
      expect(memory.values(parts)).toEqual(memory.values(whole));
    }
  });

  it('gathers rows beyond its workspace in every pass', () => {
    // Rank 128: the packed panels of some 62,800 ratings fit.
    const memory = new TestMemory(build);
    const theta = memory.matrix(200, 128, 1);
    const block = ratingBlock([64_000], theta.rows, 2);
    const factors = memory.matrix(1, 128, 3);
    const start = Float64Array.from(memory.values(factors));
    run(memory, block, theta, factors, 0.1, cg(3));
    const twin = updateRow(memory.values(theta), 128, 128, rowOf(block, 0), 0.1, false, start, 3);
    expect(relativeDistance(memory.values(factors), twin!)).toBeLessThan(1e-4);
  });

  it('solves exactly, in every bit, where the steps do not reach the residual of an exact solve', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(300, 64, 1);
    const block = ratingBlock([80, 200, 65], theta.rows, 2);
    const [settled, solved] = [memory.matrix(3, 64, 3), memory.matrix(3, 64, 3)];
    expect(run(memory, block, theta, settled, 1e-4, settling(2))).toBe(-1);
    run(memory, block, theta, solved, 1e-4, exact);
    expect(memory.values(settled)).toEqual(memory.values(solved));
  });

  it('reports the first row that has no finite solution, and leaves the others right', () => {
    for (const solver of [exact, cg(3)]) {
      for (const bad of [NaN, Infinity]) {
        const memory = new TestMemory(build);
        const theta = memory.matrix(300, 10, 1);
        const lengths = [4, 0, 20, 60, 3, 200];
        const block = ratingBlock(lengths, theta.rows, 2);
        const clean = memory.matrix(6, 10, 3);
        expect(run(memory, block, theta, clean, 0.1, solver)).toBe(-1);
        const { offsets, values } = block.columns as { offsets: Int32Array; values: Float32Array };
        values[offsets[3] + 17] = bad;
        values[offsets[5] + 1] = bad;
        const factors = memory.matrix(6, 10, 3);
        expect(run(memory, block, theta, factors, 0.1, solver)).toBe(3);
        expect(run(memory, block, theta, factors, 0.1, solver, [1, 3, 4])).toBe(3);
        const fresh = memory.matrix(6, 10, 3);
        run(memory, block, theta, fresh, 0.1, solver);
        for (const row of [0, 1, 2, 4])
          expect(rowsOfMatrix(memory, fresh)[row]).toEqual(rowsOfMatrix(memory, clean)[row]);
        expect(rowsOfMatrix(memory, fresh)[3].every(Number.isFinite)).toBe(false);
      }
    }
  });

  it('reports ratings beyond float32, and scales with those within', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(60, 10, 1);
    for (const length of [30, CHUNK_RATINGS + 1]) {
      const block = ratingBlock([length], theta.rows, 2);
      const solve = (factor: number, solver: Solver) => {
        const factors = memory.matrix(1, 10, 3, 0);
        const values = (block.columns.values as Float32Array).map((value) => value * factor);
        const scaled = { ...block, columns: { ...block.columns, values } };
        return { bad: run(memory, scaled, theta, factors, 0.1, solver), x: memory.values(factors) };
      };
      for (const solver of [exact, cg(4)]) {
        const [one, many] = [solve(1, solver), solve(2 ** 30, solver)];
        expect([one.bad, many.bad]).toEqual([-1, -1]);
        expect(many.x).toEqual(one.x.map((value) => value * 2 ** 30));
      }
      expect(solve(1e30, cg(4)).bad).toBe(0);
      expect(solve(1e38, exact).bad).toBe(0);
    }
  });

  it('reports a matrix that is not positive definite', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(30, 16, 1);
    for (const length of [4, 60, CHUNK_RATINGS + 1]) {
      const block = ratingBlock([2, length], theta.rows, 2);
      (block.columns.offsets as Int32Array)[1] = 0;
      const factors = memory.matrix(2, 16, 3);
      expect(run(memory, block, theta, factors, -1, exact)).toBe(1);
    }
  });

  it('looks at the cancel flag between chunks', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(30, 8, 1);
    const factors = memory.matrix(1, 8, 3);
    const block = ratingBlock([5 * CHUNK_RATINGS], theta.rows, 2);
    let looks = 0;
    const params = { ...exact, from: 0, to: 1, rank: 8, lambda: 0.1 };
    const outcome = update(
      memory.scope(params, { block }, { fixed: theta, previous: factors, factors }, () => ++looks > 3),
    );
    expect(outcome.bytesUp).toBe(2 * (8 * CHUNK_RATINGS + 4));
  });
});
