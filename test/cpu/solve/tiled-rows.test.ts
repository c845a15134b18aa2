/** Long rows that conjugate gradients solve tile by tile, against float64. */
import { describe, expect, it } from 'vitest';
import { type NormalEquations, normalEquations } from '../../../cpu/reference/normal-equations.ts';
import {
  biasedEquations,
  biasedGradients,
  shifted,
  updateBiasedRow,
  updateRow,
} from '../../../cpu/reference/update.ts';
import { CHUNK_RATINGS } from '../../../cpu/tasks/row-chunks.ts';
import type { Partition } from '../../../engine/partition.ts';
import { everyNth } from '../../support/deep.ts';
import {
  builds,
  centredRow,
  liftedMatrix,
  norm,
  ratingBlock,
  relativeDistance,
  rowOf,
  TestMemory,
} from '../scope.ts';
import { blockOf, COLUMNS, every, gamma, lambda, mean, ROUNDING, solve, tiled } from './tiled.ts';

/** Ratings around the ends of groups of four and of lists of 32 in one tile, which is the fourth. */
const ofOneTile = [1, 2, 3, 4, 5, 7, 31, 32, 33, 34, 63, 64].map((count) => every(count, 3 * tiled.tileRows));

const columnsOfRows: readonly (readonly number[])[] = [
  ...ofOneTile,
  // The first and the last row of Θ, and a tile that ends with Θ.
  [0],
  [COLUMNS - 1],
  [0, 63, 64, 127, 128, COLUMNS - 1],
  every(40, COLUMNS - 40),
  // Five, six and seven ratings of a tile; one of each second tile; all columns.
  every(90, 7, 11),
  every(8, 130, 128).filter((column) => column < COLUMNS),
  every(COLUMNS, 0),
  // A tile between empty ones, after a single rating.
  [5, ...every(37, 640)],
  // One column that is rated repeatedly, across the end of a list, and next to others.
  every(35, 200, 0),
  [1, 1, 1, ...every(9, 300, 0), 301, 301],
];

const centred = (block: Partition, row: number) => centredRow(block, row, mean, gamma);
const lifted = (memory: TestMemory, rank: number) => liftedMatrix(memory, COLUMNS, rank);

/** zᵀM z - 2 cᵀz in float64. */
function objectiveOf({ matrix, bias }: NormalEquations, z: ArrayLike<number>): number {
  const n = bias.length;
  let sum = 0;
  for (let i = 0; i < n; i++) {
    let product = 0;
    for (let j = 0; j < n; j++) product += matrix[i * n + j] * z[j];
    sum += z[i] * (product - 2 * bias[i]);
  }
  return sum;
}

const squaresOf = (values: ArrayLike<number>) => norm(values) ** 2;

describe.each(builds)('rows solved tile by tile with %s', (build) => {
  it.each(everyNth([8, 24, 64, 100, 128], 2))('solve biases beside factors, rank %i', (rank) => {
    const memory = new TestMemory(build);
    const [theta, block] = [lifted(memory, rank), blockOf(columnsOfRows)];
    const regularization = { lambda, exponent: 0.5, offset: 2, biasLambda: 0.1, damping: 3 };
    const equations = columnsOfRows.map(({ length: n }, row) =>
      shifted(
        biasedEquations(memory.values(theta), theta.stride, rank, centred(block, row)),
        lambda * n ** 0.5 + 2,
        0.1 * n + 3,
      ),
    );
    for (const cgSteps of [1, 3, 6]) {
      const { badRow, objective, bias, ran, x, start } = solve(
        { memory, theta, block },
        { cgSteps, biased: true, ...regularization },
      );
      expect([badRow, ran.rows]).toEqual([-1, block.rows]);
      let [expected, squares] = [0, 0];
      columnsOfRows.forEach(({ length: n }, row) => {
        const shifts = { shift: lambda * n ** 0.5 + 2, ownShift: 0.1 * n + 3 };
        const ratings = centred(block, row);
        const twin = updateBiasedRow(
          memory.values(theta),
          theta.stride,
          rank,
          ratings,
          shifts,
          false,
          start(row),
          cgSteps,
        )!;
        const found = [...x(row).subarray(0, rank), bias[row]];
        expect(norm(x(row).subarray(rank))).toBe(0);
        // The twin computes ‖b‖, and so may end a step before the kernels do.
        expect(relativeDistance(found, twin), `row ${row} of ${n}, ${cgSteps} steps`).toBeLessThan(
          cgSteps < 6 ? ROUNDING : 1e-3,
        );
        expected += objectiveOf(equations[row], found);
        squares += squaresOf(ratings.values);
      });
      expect(Math.abs(objective - expected) / squares).toBeLessThan(1e-6);
    }
  });

  it.each([false, true])('may come in pieces, with biases: %s', (biased) => {
    const memory = new TestMemory(build);
    const rank = 8;
    const theta = biased ? lifted(memory, rank) : memory.matrix(COLUMNS, rank, 1);
    const lengths = [90, 2 * CHUNK_RATINGS + 33, CHUNK_RATINGS, 50, CHUNK_RATINGS + 1];
    const block = ratingBlock(lengths, COLUMNS, 2);
    const { offsets, values } = block.columns as { offsets: Int32Array; values: Float32Array };
    // Large ratings where pieces meet reveal one that is lost, doubled or assigned to another column.
    for (const at of [
      CHUNK_RATINGS - 1,
      CHUNK_RATINGS,
      2 * CHUNK_RATINGS - 1,
      2 * CHUNK_RATINGS,
      2 * CHUNK_RATINGS + 32,
    ])
      values[offsets[1] + at] = 20_000;
    values[offsets[4] + CHUNK_RATINGS] = 20_000;
    const { ran, badRow, x, bias, start, objective } = solve(
      { memory, theta, block },
      { cgSteps: 3, biased },
    );
    expect([ran.rows, badRow]).toEqual([lengths.length, -1]);
    let [expected, squares] = [0, 0];
    lengths.forEach((n, row) => {
      const ratings = biased ? centred(block, row) : rowOf(block, row);
      const given = memory.values(theta);
      const equations = biased
        ? shifted(biasedEquations(given, theta.stride, rank, ratings), lambda * n, lambda * n)
        : normalEquations(given, theta.stride, rank, ratings, lambda);
      const twin = biased
        ? biasedGradients(equations, start(row), 3)
        : updateRow(given, theta.stride, rank, ratings, lambda, false, start(row), 3)!;
      const found = biased ? [...x(row), bias[row]] : x(row);
      expect(relativeDistance(found, twin), `row of ${n}`).toBeLessThan(2e-5);
      expected += objectiveOf(equations, found);
      squares += squaresOf(ratings.values);
    });
    expect(Math.abs(objective - expected) / squares).toBeLessThan(2e-6);
  });

  it('of 500,000 ratings lose few digits, with biases', () => {
    const memory = new TestMemory(build);
    const rank = 8;
    const [theta, block] = [lifted(memory, rank), ratingBlock([500_000], COLUMNS, 2)];
    const ratings = centred(block, 0);
    const sums = biasedEquations(memory.values(theta), rank, rank, ratings);
    const equations = shifted(sums, lambda * 500_000, lambda * 500_000);
    const { x, bias, start, objective } = solve({ memory, theta, block }, { cgSteps: 3, biased: true });
    const found = [...x(0), bias[0]];
    const twin = biasedGradients(equations, start(0), 3);
    // One chain of sums in float32 over all ratings was 20 times as far off.
    expect(relativeDistance(found, twin)).toBeLessThan(6e-5);
    expect(Math.abs(objective - objectiveOf(equations, found)) / squaresOf(ratings.values)).toBeLessThan(
      5e-6,
    );
  });

  it('number the rows of a tile in 16 bits', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(140_000, 8, 1);
    // Around the ends of tiles of 65,536 rows, in eights and alone.
    const columns = [
      every(40, 65_516),
      every(40, 131_060, 1),
      [0, 65_535, 65_536, 131_071, 131_072, 139_999],
      every(200, 3, 700),
    ];
    const block = ratingBlock(
      columns.map(({ length }) => length),
      theta.rows,
      2,
    );
    (block.columns.indices as Uint32Array).set(columns.flat());
    const { x, start } = solve(
      { memory, theta, block },
      { cgSteps: 3, tiled: { ...tiled, tileRows: 65_536 } },
    );
    columns.forEach((_, row) =>
      expect(
        relativeDistance(
          x(row),
          updateRow(memory.values(theta), 8, 8, rowOf(block, row), lambda, false, start(row), 3)!,
        ),
      ).toBeLessThan(ROUNDING),
    );
  });

  it('stay at their solution, at zero too, while others take their steps', () => {
    const memory = new TestMemory(build);
    const rank = 16;
    const theta = memory.matrix(COLUMNS, rank, 1);
    const block = ratingBlock([200, 200, 200], COLUMNS, 2);
    (block.columns.values as Float32Array).fill(0, 0, 200);
    const previous = memory.matrix(3, rank, 3);
    const start = memory.values(previous);
    start.fill(0, 0, rank);
    const solution = updateRow(
      memory.values(theta),
      rank,
      rank,
      rowOf(block, 1),
      lambda,
      true,
      new Float64Array(rank),
      0,
    )!;
    start.set(solution, rank);
    const { x, objective } = solve({ memory, theta, block, previous }, { cgSteps: 6 });
    expect([...x(0)]).toEqual(Array.from({ length: rank }, () => 0));
    expect(x(1)).toEqual(Float32Array.from(solution));
    const twin = updateRow(
      memory.values(theta),
      rank,
      rank,
      rowOf(block, 2),
      lambda,
      false,
      Float64Array.from(start.subarray(2 * rank)),
      6,
    )!;
    expect(relativeDistance(x(2), twin)).toBeLessThan(ROUNDING);
    const expected = [1, 2].reduce(
      (sum, row) =>
        sum +
        objectiveOf(normalEquations(memory.values(theta), rank, rank, rowOf(block, row), lambda), x(row)),
      0,
    );
    expect(objective / expected).toBeCloseTo(1, 6);
  });
});
