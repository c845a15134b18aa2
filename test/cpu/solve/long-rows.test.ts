/** Rows solved matrix-free: above the ranks for which A is formed, and longer than a chunk. */
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../../cpu/handler.ts';
import { gramMatrix } from '../../../cpu/reference/normal-equations.ts';
import { conjugateGradient } from '../../../cpu/reference/solvers.ts';
import { CHUNK_RATINGS } from '../../../cpu/tasks/row-chunks.ts';
import { updateImplicit, update } from '../../../cpu/tasks/update.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { isDeep } from '../../support/deep.ts';
import { builds, columnOf, ratingBlock, relativeDistance, rowOf, TestMemory } from '../scope.ts';

const cg = { cgBelow: 2 ** 31 - 1, cgSteps: 4 };
const COLUMNS = 40;
/** Around a chunk and around a part of 1,024 ratings. */
const lengths = [3, 0, CHUNK_RATINGS + 1, 1030, CHUNK_RATINGS + 1029];
const ranks = isDeep ? [100, 529] : [529];
const gamma = Float32Array.from({ length: COLUMNS }, (_, k) => Math.sin(k));
const [MEAN, SHIFT, OWN_SHIFT] = [2.5, 20, 9];

/** Equations of a row from the sums of its ratings over each column, in float64. */
interface Sums {
  readonly matrix: Float64Array;
  readonly b: Float64Array;
  readonly s: Float64Array;
  readonly total: number;
}

function sumsOf(
  theta: Float32Array,
  { stride, columns: rank }: MatrixView,
  ratings: { readonly indices: Uint32Array; readonly values: Float32Array },
  termsOf: (value: number, column: number) => readonly [weight: number, target: number],
): Sums {
  const [weights, targets] = [new Float64Array(COLUMNS), new Float64Array(COLUMNS)];
  ratings.indices.forEach((column, k) => {
    const [weight, target] = termsOf(ratings.values[k], column);
    weights[column] += weight;
    targets[column] += target;
  });
  const [matrix, b, s] = [rank * rank, rank, rank].map((length) => new Float64Array(length));
  for (let column = 0; column < COLUMNS; column++) {
    const row = theta.subarray(column * stride, column * stride + rank);
    for (let i = 0; i < rank; i++) {
      b[i] += targets[column] * row[i];
      s[i] += weights[column] * row[i];
      for (let j = 0; j < rank; j++) matrix[i * rank + j] += weights[column] * row[i] * row[j];
    }
  }
  return { matrix, b, s, total: targets.reduce((sum, target) => sum + target, 0) };
}

/** Adds `shift` to A's diagonal and, for a bias with the weight c, eliminates it. */
function addTo({ matrix, b, s, total }: Sums, shift: number, c: number): void {
  const rank = b.length;
  for (let i = 0; i < rank; i++) {
    matrix[i * rank + i] += shift;
    if (c === 0) continue;
    b[i] -= (total / c) * s[i];
    for (let j = 0; j < rank; j++) matrix[i * rank + j] -= (s[i] * s[j]) / c;
  }
}

const dot = (left: Float64Array, right: ArrayLike<number>) =>
  left.reduce((sum, value, k) => sum + value * right[k], 0);

interface Solved {
  readonly factors: Float32Array;
  readonly objective: number;
  readonly bias: Float32Array;
}

describe.each(builds)('rows solved matrix-free with %s', (build) => {
  describe.each(ranks)('rank %i', (rank) => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(COLUMNS, rank, 1);
    const block = ratingBlock(lengths, COLUMNS, 2);
    const start = memory.matrix(lengths.length, rank, 3);

    /** Solves the rows in tasks that end at the cuts. */
    const solve = (run: (from: number, to: number, factors: MatrixView) => number, cuts: number[] = []) => {
      const factors = memory.matrix(lengths.length, rank, 3);
      const edges = [0, ...cuts, lengths.length];
      let objective = 0;
      for (let k = 0; k + 1 < edges.length; k++) objective += run(edges[k], edges[k + 1], factors);
      return { factors: memory.values(factors).slice(), objective };
    };

    const explicit = (biased: boolean, cuts?: number[], solver: object = cg): Solved => {
      const bias = new Float32Array(lengths.length);
      const biases = { fixedBias: columnOf(gamma), bias: columnOf(bias) };
      const partitions = { block, ...(biased ? biases : undefined) };
      const regularization = { lambda: 0, offset: SHIFT, damping: OWN_SHIFT };
      const params = { ...cg, ...solver, ...regularization, rank, ...(biased ? { mean: MEAN } : {}) };
      const solved = solve((from, to, factors) => {
        const matrices = { fixed: theta, previous: start, factors };
        const scope = memory.scope({ ...params, from, to }, partitions, matrices);
        const { values } = update(scope);
        expect(values?.badRow).toBe(-1);
        return values?.objective ?? NaN;
      }, cuts);
      return { ...solved, bias };
    };

    /** Compares a row with the float64 twin. Returns the twin's objective. */
    const compare = (factors: Float32Array, row: number, sums: Sums): [Float64Array, number] => {
      const x = factors.subarray(row * theta.stride, row * theta.stride + rank);
      const from = Float64Array.from(
        memory.values(start).subarray(row * theta.stride, row * theta.stride + rank),
      );
      const twin = conjugateGradient(sums.matrix, sums.b, from, cg.cgSteps);
      expect(relativeDistance(x, twin)).toBeLessThan(1e-4);
      const product = twin.map((_, i) => dot(sums.matrix.subarray(i * rank, (i + 1) * rank), twin));
      return [twin, dot(product, twin) - 2 * dot(sums.b, twin)];
    };

    it.each([false, true])('agrees with the twin, biases: %s', (biased) => {
      const { factors, objective, bias } = explicit(biased);
      let expected = 0;
      lengths.forEach((n, row) => {
        if (n === 0) return;
        const c = biased ? n + OWN_SHIFT : 0;
        const sums = sumsOf(memory.values(theta), theta, rowOf(block, row), (value, at) => [
          1,
          biased ? value - MEAN - gamma[at] : value,
        ]);
        addTo(sums, SHIFT, c);
        const [x, own] = compare(factors, row, sums);
        expected += own - (biased ? sums.total ** 2 / c : 0);
        if (biased) expect(bias[row]).toBeCloseTo((sums.total - dot(sums.s, x)) / c, 4);
      });
      expect(objective / expected).toBeCloseTo(1, 4);
    });

    it('gives the same bits for any cut of the rows into tasks', () => {
      const [whole, parts] = [explicit(true), explicit(true, [2, 3, 4])];
      expect(parts.factors).toEqual(whole.factors);
      expect(parts.bias).toEqual(whole.bias);
    });

    it('settles at the solution, in rows of any length', () => {
      const settled = explicit(true, [], { cgSteps: 300, settles: true });
      const far = explicit(true, [], { cgSteps: 300 });
      expect(relativeDistance(settled.factors, far.factors)).toBeLessThan(1e-4);
    });

    it.each(['none', 'prior', 'anchored'])('agrees with the twin of implicit data, prior: %s', (prior) => {
      const anchored = prior === 'anchored';
      const { stride } = theta;
      const gram = { pointer: memory.allocate(4 * stride * stride), rows: stride, columns: rank, stride };
      const dense = gramMatrix(memory.values(theta), stride, rank, COLUMNS, 1);
      for (let i = 0; i < rank; i++)
        memory.values(gram).set(dense.subarray(i * rank, (i + 1) * rank), i * stride);
      const shifts = columnOf(sharedArray(Float32Array, lengths.length).fill(SHIFT), 'row-shifts');
      const anchors = columnOf(new Uint8Array(lengths.length).fill(1) as never, 'row-anchors');
      const partitions = { block, shifts, ...(anchored && { anchors }) };
      const params = { ...cg, rank, alpha: 2.5, base: 1 };
      const { factors } = solve((from, to, output) => {
        const matrices = { fixed: theta, previous: start, factors: output, gram };
        const drawn = prior === 'none' ? matrices : { ...matrices, prior: start };
        const { values } = updateImplicit(memory.scope({ ...params, from, to }, partitions, drawn));
        expect(values?.badRow).toBe(-1);
        return values?.objective ?? NaN;
      });
      lengths.forEach((n, row) => {
        if (n === 0) return;
        const sums = sumsOf(memory.values(theta), theta, rowOf(block, row), (value) => [
          2.5 * value,
          1 + 2.5 * value,
        ]);
        const own = memory.values(start).subarray(row * stride, row * stride + rank);
        if (prior !== 'none') for (let i = 0; i < rank; i++) sums.b[i] += SHIFT * own[i];
        if (anchored)
          for (let i = 0; i < rank; i++) sums.b[i] += dot(dense.subarray(i * rank, (i + 1) * rank), own);
        for (let k = 0; k < dense.length; k++) sums.matrix[k] += dense[k];
        addTo(sums, SHIFT, 0);
        compare(factors, row, sums);
      });
    });
  });

  it('refuses exact solves of rows too long for their A', () => {
    const memory = new TestMemory(build, 1);
    const theta = memory.matrix(4, 600, 1);
    const block = ratingBlock([3], 4, 2);
    const factors = memory.matrix(1, 600, 3);
    const matrices = { fixed: theta, previous: factors, factors };
    const params = { cgBelow: 0, cgSteps: 0, lambda: 0.1, rank: 600, from: 0, to: 1 };
    expect(() => update(memory.scope(params, { block }, matrices))).toThrow('Use solver cg');
  });
});
