import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../cpu/handler.ts';
import { solveCholesky } from '../../cpu/reference/solvers.ts';
import { fitCoefficients, multiplyAttributes } from '../../cpu/tasks/attributes.ts';
import { weightedNorm } from '../../cpu/tasks/weighted-norm.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import { workColumns } from '../../operators/tasks/attribute-tasks.ts';
import { builds, columnOf, ratingBlock, relativeDistance, TestMemory } from './scope.ts';

const ROWS = 300;
const FEATURES = 21;
const MU = 0.5;
const lengths = Array.from({ length: ROWS }, (_, row) => (row % 7 === 0 ? 0 : 1 + ((row * row) % 40)));

/** The constant, and up to 8 of the other features but the last, which no row has. */
function attributes(): Partition {
  const random = new CounterRandom(9);
  const rows = Array.from({ length: ROWS }, (_, row) => {
    const own = Array.from({ length: row % 9 }, (_k, k) => 1 + random.below(16 * row + k, FEATURES - 2));
    return [0, ...new Set(own.sort((left, right) => left - right))];
  });
  const count = rows.flat().length;
  const [offsets, indices] = [sharedArray(Int32Array, ROWS + 1), sharedArray(Uint32Array, count)];
  const values = sharedArray(Float32Array, count);
  rows.forEach((own, row) => {
    indices.set(own, offsets[row]);
    own.forEach((feature, k) => (values[offsets[row] + k] = feature === 0 ? 1 : Math.sin(row + feature) * 2));
    offsets[row + 1] = offsets[row] + own.length;
  });
  return { layout: 'rating-block', rows: ROWS, columns: { offsets, indices, values } };
}

describe.each(builds)('coefficients of attributes with %s', (build) => {
  const memory = new TestMemory(build);
  const block = ratingBlock(lengths, 50, 2);
  const own = attributes();
  const { offsets, indices, values } = own.columns as Record<string, Int32Array>;
  const dense = Array.from({ length: ROWS }, (_, row) => {
    const features = new Float64Array(FEATURES);
    for (let k = offsets[row]; k < offsets[row + 1]; k++) features[indices[k]] = values[k];
    return features;
  });
  const matrices = (rank: number) => ({
    factors: memory.matrix(ROWS, rank, 5),
    previous: memory.matrix(FEATURES, rank, 6),
    work: memory.matrix(FEATURES, workColumns(rank), 7),
  });
  const params = { lambda: 0.3, exponent: 0.5, offset: 0.2, damping: 3, biasLambda: 0.7, ridge: MU };

  /** Steps of the last task. */
  let taken = 0;

  /** (FᵀD F + μ I)⁻¹ FᵀD x in float64. */
  const expected = (x: (row: number) => number, weight: (n: number) => number) => {
    const matrix = new Float64Array(FEATURES * FEATURES);
    const b = new Float64Array(FEATURES);
    for (let i = 0; i < FEATURES; i++) matrix[i * FEATURES + i] = MU;
    lengths.forEach((n, row) => {
      const d = n === 0 ? 0 : weight(n);
      for (let i = 0; i < FEATURES; i++) {
        b[i] += d * dense[row][i] * x(row);
        for (let j = 0; j < FEATURES; j++) matrix[i * FEATURES + j] += d * dense[row][i] * dense[row][j];
      }
    });
    return solveCholesky(matrix, b)!;
  };
  const shiftOf = (n: number) => 0.3 * n ** 0.5 + 0.2;

  const fit = (
    given: Readonly<Record<string, MatrixView>>,
    columns: Record<string, Partition>,
    more: object,
  ) => {
    const { columns: rank } = given.previous;
    const coefficients = memory.matrix(FEATURES, rank, 8);
    for (let from = 0; from < rank; from += 8) {
      const own8 = { ...params, rank, steps: 100, from, to: Math.min(rank, from + 8), ...more };
      taken = fitCoefficients(memory.scope(own8, { attributes: own, ...columns }, { ...given, coefficients }))
        .values!.steps;
    }
    return coefficients;
  };
  const column = ({ pointer, rows, stride }: MatrixView, k: number) =>
    Array.from({ length: rows }, (_, row) => memory.floats(pointer, rows * stride)[row * stride + k]);

  it.each([1, 8, 10, 24])('are the ridge regression of factors, rank %i', (rank) => {
    memory.reset();
    const given = matrices(rank);
    const found = fit(given, { block }, {});
    const shifts = Float32Array.from(lengths, (n) => (n === 0 ? 0 : shiftOf(n)));
    const ofShifts = fit(given, { shifts: columnOf(shifts, 'row-shifts') }, { lambda: 0 });
    for (let k = 0; k < rank; k++) {
      const x = column(given.factors, k);
      const twin = expected((row) => x[row], shiftOf);
      expect(relativeDistance(column(found, k), twin)).toBeLessThan(2e-4);
      expect(relativeDistance(column(ofShifts, k), twin)).toBeLessThan(2e-4);
    }
    for (let k = rank; k < found.stride; k++)
      expect(column(found, k).every((value) => value === 0)).toBe(true);
    const product = memory.matrix(ROWS, rank, 9);
    for (const [from, to] of [
      [0, 7],
      [7, 7],
      [7, ROWS],
    ])
      multiplyAttributes(
        memory.scope({ rank, from, to }, { attributes: own }, { coefficients: found, product }),
      );
    // Rows that a GPU takes are in host memory, in its stride.
    const stride = 16 * Math.ceil(rank / 16);
    const sent = new Float32Array(ROWS * stride);
    multiplyAttributes(
      memory.scope(
        { rank, from: 0, to: ROWS },
        { attributes: own, product: { layout: 'factors', rows: ROWS, columns: { values: sent } } },
        { coefficients: found },
      ),
    );
    for (let k = 0; k < stride; k++)
      expect(Array.from({ length: ROWS }, (_, row) => sent[row * stride + k])).toEqual(
        k < rank ? Array.from(column(product, k)) : Array.from({ length: ROWS }, () => 0),
      );
    const [first, sum] = [
      column(found, 0),
      (row: number, a: number[]) => dense[row].reduce((all, f, i) => all + f * a[i], 0),
    ];
    expect(
      relativeDistance(
        column(product, 0),
        dense.map((_, row) => sum(row, first)),
      ),
    ).toBeLessThan(1e-6);
    // The penalty of what the attributes leave.
    const norms = weightedNorm(
      memory.scope(
        { rank, from: 0, to: ROWS, exponent: 0.5 },
        { block },
        { factors: given.factors, prior: product },
      ),
    ).values!;
    let weighted = 0;
    for (let k = 0; k < rank; k++) {
      const [x, a] = [column(given.factors, k), column(product, k)];
      lengths.forEach((n, row) => (weighted += n ** 0.5 * (x[row] - a[row]) ** 2));
    }
    expect(norms.sum / weighted).toBeCloseTo(1, 6);
    const plain = weightedNorm(memory.scope({ rank, from: 0, to: FEATURES }, {}, { factors: found })).values!;
    const squares = memory.values(found).reduce((all, value) => all + value * value, 0);
    expect(plain.plain / squares).toBeCloseTo(1, 6);
  });

  it('are fitted to biases with the shifts of biases', () => {
    memory.reset();
    const { previous, work } = matrices(1);
    const bias = Float32Array.from({ length: ROWS }, (_, row) => Math.cos(row));
    const found = fit({ previous, work }, { block, bias: columnOf(bias) }, { rank: 1 });
    const twin = expected(
      (row) => bias[row],
      (n) => 0.7 * n + 3,
    );
    expect(relativeDistance(column(found, 0), twin)).toBeLessThan(2e-4);
    const product = new Float32Array(ROWS);
    multiplyAttributes(
      memory.scope(
        { rank: 1, from: 3, to: ROWS },
        { attributes: own, product: columnOf(product) },
        { coefficients: found },
      ),
    );
    expect(product.subarray(0, 3)).toEqual(new Float32Array(3));
    for (const row of [3, 50, 299])
      expect(product[row]).toBeCloseTo(
        dense[row].reduce((all, f, i) => all + f * twin[i], 0),
        4,
      );
  });

  it('come closer with each step, and start at the previous ones', () => {
    memory.reset();
    const given = matrices(8);
    const best = fit(given, { block }, {});
    const apart = [1, 2, 4, 8].map((steps) =>
      relativeDistance(column(fit(given, { block }, { steps }), 3), column(best, 3)),
    );
    expect(apart).toEqual([...apart].sort((left, right) => right - left));
    expect(taken).toBe(8);
    const again = fit({ ...given, previous: best }, { block }, { steps: 1 });
    expect(relativeDistance(column(again, 3), column(best, 3))).toBeLessThan(2e-4);
    expect(taken).toBeLessThan(2);
  });
});
