/**
 * The non-negative update against its float64 twin, and by the conditions of a solution (Karush, Kuhn and
 * Tucker).
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../../cpu/handler.ts';
import { normalEquations, type NormalEquations } from '../../../cpu/reference/normal-equations.ts';
import { solveNonnegative } from '../../../cpu/reference/solvers.ts';
import { CHUNK_RATINGS } from '../../../cpu/tasks/row-chunks.ts';
import { update } from '../../../cpu/tasks/update.ts';
import type { Partition } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { isDeep } from '../../support/deep.ts';
import { builds, norm, ratingBlock, relativeDistance, rowOf, rowsOfMatrix, TestMemory } from '../scope.ts';

type Fixed = 'mixed' | 'absolute' | 'sparse' | 'collinear';

/** Factors of the fixed side: of both signs, of one, half of them 0, or all rows nearly the same. */
function fixedSide(memory: TestMemory, rows: number, rank: number, kind: Fixed): MatrixView {
  const matrix = memory.matrix(rows, rank, 1);
  const values = memory.values(matrix);
  const random = new CounterRandom(9);
  values.forEach((value, at) => {
    if (kind === 'mixed' || at % matrix.stride >= rank) return;
    values[at] = kind === 'sparse' && random.uniform(at) < 0.5 ? 0 : Math.abs(value);
    if (kind === 'collinear')
      values[at] = (random.uniform(at % matrix.stride) + 1e-3 * random.uniform(at)) / Math.sqrt(rank);
  });
  return matrix;
}

function run(
  memory: TestMemory,
  block: Partition,
  fixed: MatrixView,
  factors: MatrixView,
  lambda: number,
  cuts: number[] = [],
): number {
  const edges = [0, ...cuts, block.rows];
  let badRow = -1;
  for (let k = 0; k + 1 < edges.length; k++) {
    const params = {
      cgBelow: 0,
      cgSteps: 6,
      from: edges[k],
      to: edges[k + 1],
      rank: fixed.columns,
      lambda,
      exact: 'nonnegative' as const,
    };
    const outcome = update(memory.scope(params, { block }, { fixed, previous: factors, factors }));
    if (badRow < 0) badRow = outcome.values!.badRow as number;
  }
  return badRow;
}

/** The worst violation of x >= 0, A x - b >= 0 and x (A x - b) = 0, over ‖b‖. */
function violation({ matrix, bias }: NormalEquations, x: ArrayLike<number>): number {
  const rank = bias.length;
  let worst = 0;
  for (let i = 0; i < rank; i++) {
    let gradient = -bias[i];
    for (let j = 0; j < rank; j++) gradient += matrix[i * rank + j] * x[j];
    if (x[i] < 0) return Infinity;
    worst = Math.max(worst, x[i] === 0 ? -gradient : Math.abs(gradient));
  }
  return worst / (norm(bias) || 1);
}

/** ½ xᵀA x - bᵀx */
function objective({ matrix, bias }: NormalEquations, x: ArrayLike<number>): number {
  const rank = bias.length;
  let sum = 0;
  for (let i = 0; i < rank; i++) {
    for (let j = 0; j < rank; j++) sum += 0.5 * x[i] * matrix[i * rank + j] * x[j];
    sum -= bias[i] * x[i];
  }
  return sum;
}

describe.each(builds)('non-negative update with %s', (build) => {
  it.each(isDeep ? [1, 7, 32, 64, 100] : [1, 7, 32, 100])(
    'finds the minimum over x >= 0 for rows of every kind, rank %i',
    (rank) => {
      const lengths = [0, 1, 2, 7, 8, 31, 33, 0, 64, 130, 300];
      for (const kind of ['mixed', 'absolute', 'sparse', 'collinear'] as const) {
        const small = rank > 32 ? [kind === 'collinear' ? 1e-4 : 0.05] : [0.05, 1e-4];
        for (const lambda of isDeep ? [0.05, 1e-4] : small) {
          const memory = new TestMemory(build, 12);
          const theta = fixedSide(memory, 400, rank, kind);
          const block = ratingBlock(lengths, theta.rows, 2);
          const factors = memory.matrix(lengths.length, rank, 3);
          expect(run(memory, block, theta, factors, lambda)).toBe(-1);
          rowsOfMatrix(memory, factors).forEach((x, row) => {
            expect(norm(x.subarray(rank))).toBe(0);
            if (lengths[row] === 0) return expect(norm(x)).toBe(0);
            const problem = normalEquations(
              memory.values(theta),
              theta.stride,
              rank,
              rowOf(block, row),
              lambda,
            );
            expect(violation(problem, x)).toBeLessThan(3e-6);
            // The twin is slow.
            if (rank > 32 && row % 3 > 0) return;
            const twin = solveNonnegative(problem)!;
            expect(violation(problem, twin)).toBeLessThan(1e-10);
            expect(objective(problem, x)).toBeLessThanOrEqual(objective(problem, twin) * (1 - 1e-5));
            if (lambda === 0.05) expect(relativeDistance(x, twin)).toBeLessThan(1e-3);
          });
        }
      }
    },
  );

  it.each(isDeep ? [512, 200] : [200])('converges at rank %i from any start, at any λ', (rank) => {
    const memory = new TestMemory(build, 16);
    for (const kind of ['absolute', 'collinear'] as const) {
      const theta = fixedSide(memory, 300, rank, kind);
      const block = ratingBlock([3, 250], theta.rows, 2);
      const [cold, warm] = [memory.matrix(2, rank, 3, 0), memory.matrix(2, rank, 4)];
      for (const lambda of [0.05, 1e-6]) {
        for (const factors of [cold, warm]) {
          expect(run(memory, block, theta, factors, lambda)).toBe(-1);
          rowsOfMatrix(memory, factors).forEach((x, row) => {
            expect(
              violation(
                normalEquations(memory.values(theta), theta.stride, rank, rowOf(block, row), lambda),
                x,
              ),
            ).toBeLessThan(1e-5);
          });
        }
      }
    }
  });

  it('goes one feature at a time where blocks of them circle', () => {
    // Without λ, from fewer ratings than features or of the same direction: A is singular.
    for (const kind of ['mixed', 'absolute', 'collinear'] as const) {
      const memory = new TestMemory(build, 12);
      const theta = fixedSide(memory, 300, 10, kind);
      const lengths = Array.from({ length: 60 }, (_, row) => 1 + (row % 12));
      const block = ratingBlock(lengths, theta.rows, 5);
      const factors = memory.matrix(lengths.length, 10, 3);
      expect(run(memory, block, theta, factors, 0)).toBe(-1);
      rowsOfMatrix(memory, factors).forEach((x, row) => {
        expect(
          violation(normalEquations(memory.values(theta), theta.stride, 10, rowOf(block, row), 0), x),
        ).toBeLessThan(2e-4);
      });
    }
  });

  it('gives the same bits for any cut of the rows into tasks', () => {
    const memory = new TestMemory(build, 12);
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(40), fc.nat(2000), fc.constant(0)), { minLength: 1, maxLength: 12 }),
        fc.constantFrom(3, 16, 40),
        fc.array(fc.nat(12), { maxLength: 4 }),
        (lengths, rank, cuts) => {
          memory.reset();
          const theta = fixedSide(memory, 60, rank, 'absolute');
          const block = ratingBlock(lengths, theta.rows, 2);
          const [whole, parts] = [
            memory.matrix(lengths.length, rank, 3),
            memory.matrix(lengths.length, rank, 3),
          ];
          run(memory, block, theta, whole, 0.01);
          run(
            memory,
            block,
            theta,
            parts,
            0.01,
            cuts.filter((cut) => cut <= lengths.length).sort((a, b) => a - b),
          );
          expect(new Uint32Array(memory.values(parts).slice().buffer)).toEqual(
            new Uint32Array(memory.values(whole).slice().buffer),
          );
        },
      ),
      { numRuns: 15, seed: 1 },
    );
  });

  it('solves rows around the length of a chunk, and longer, the same beside any others', () => {
    const lengths = [3, CHUNK_RATINGS - 1, CHUNK_RATINGS, CHUNK_RATINGS + 1, 0, 4];
    const memory = new TestMemory(build, 16);
    const theta = fixedSide(memory, 50, 12, 'mixed');
    const block = ratingBlock(lengths, theta.rows, 2);
    const [whole, parts] = [memory.matrix(lengths.length, 12, 3), memory.matrix(lengths.length, 12, 3)];
    expect(run(memory, block, theta, whole, 0.1)).toBe(-1);
    rowsOfMatrix(memory, whole).forEach((x, row) => {
      if (lengths[row] === 0) return expect(norm(x)).toBe(0);
      expect(
        violation(normalEquations(memory.values(theta), theta.stride, 12, rowOf(block, row), 0.1), x),
      ).toBeLessThan(3e-6);
    });
    run(memory, block, theta, parts, 0.1, [1, 3, 4]);
    expect(memory.values(parts)).toEqual(memory.values(whole));
  });

  it('gives zero to a row whose ratings are all zero or negative', () => {
    const memory = new TestMemory(build, 12);
    const theta = fixedSide(memory, 60, 10, 'absolute');
    for (const factor of [0, -1]) {
      const block = ratingBlock([4, 50], theta.rows, 2);
      const { values } = block.columns as { values: Float32Array };
      values.forEach((value, k) => (values[k] = value * factor));
      for (const lambda of [0.1, 0]) {
        const factors = memory.matrix(2, 10, 3);
        expect(run(memory, block, theta, factors, lambda)).toBe(-1);
        expect(norm(memory.values(factors))).toBe(0);
      }
    }
  });

  it('reports the first row that has no finite solution as NaN, and leaves the others right', () => {
    for (const bad of [NaN, Infinity, 1e38]) {
      const memory = new TestMemory(build, 16);
      const theta = fixedSide(memory, 300, 10, 'absolute');
      const lengths = [4, 0, 20, CHUNK_RATINGS + 5, 3, 200];
      const block = ratingBlock(lengths, theta.rows, 2);
      const clean = memory.matrix(6, 10, 3);
      expect(run(memory, block, theta, clean, 0.1)).toBe(-1);
      const { offsets, values } = block.columns as { offsets: Int32Array; values: Float32Array };
      values.fill(bad, offsets[3] + 17, offsets[3] + 90);
      values.fill(bad, offsets[5] + 1, offsets[5] + 90);
      const factors = memory.matrix(6, 10, 3);
      expect(run(memory, block, theta, factors, 0.1)).toBe(3);
      const [found, expected] = [rowsOfMatrix(memory, factors), rowsOfMatrix(memory, clean)];
      for (const row of [0, 1, 2, 4]) expect(found[row]).toEqual(expected[row]);
      for (const row of [3, 5]) expect(found[row].subarray(0, 10).every(Number.isNaN)).toBe(true);
    }
  });
});
