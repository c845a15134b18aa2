/** Long rows that conjugate gradients solve tile by tile, against float64. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../../cpu/handler.ts';
import { biasedEquations, biasedGradients, shifted } from '../../../cpu/reference/biased.ts';
import { conjugateGradient } from '../../../cpu/reference/conjugate-gradient.ts';
import { type NormalEquations, normalEquations } from '../../../cpu/reference/normal-equations.ts';
import { updateBiasedRow, updateRow } from '../../../cpu/reference/update.ts';
import { CHUNK_RATINGS } from '../../../cpu/tasks/row-chunks.ts';
import { update } from '../../../cpu/tasks/update.ts';
import type { Partition } from '../../../engine/partition.ts';
import type { RowRegularization, Tiling } from '../../../operators/tasks/tasks.ts';
import { builds, norm, ratingBlock, relativeDistance, rowOf, TestMemory } from '../scope.ts';

/** Of the tests' Θ: its last tile holds 40 rows. */
const COLUMNS = 1000;
const tiled: Tiling = { from: 1, to: 500_000, tileRows: 64 };
const lambda = 0.05;
const mean = 2.5;
const gamma = Float32Array.from({ length: COLUMNS }, (_, k) => Math.sin(k));

/** The columns `first`, `first + step`, .. of so many ratings. */
const every = (count: number, first: number, step = 1) => Array.from({ length: count }, (_, k) => first + k * step);

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
  // A tile between empty ones, behind a single rating.
  [5, ...every(37, 640)],
  // One column that is rated again and again, over the end of a list, and beside others.
  every(35, 200, 0),
  [1, 1, 1, ...every(9, 300, 0), 301, 301],
];

/** A rating-block with these columns in its rows, ratings 0.5 .. 5. */
function blockOf(columns: readonly (readonly number[])[]): Partition {
  const block = ratingBlock(columns.map(({ length }) => length), COLUMNS, 2);
  (block.columns.indices as Uint32Array).set(columns.flat());
  return block;
}

const column = (values: Float32Array): Partition => ({ layout: 'bias', rows: values.length, columns: { values } });

/** Levels far from 0 test the elimination of biases: s is then large. */
function lifted(memory: TestMemory, rank: number): MatrixView {
  const theta = memory.matrix(COLUMNS, rank, 1);
  const values = memory.values(theta);
  for (let row = 0; row < COLUMNS; row++) for (let k = 0; k < rank; k++) values[row * theta.stride + k] += 0.1;
  return theta;
}

interface Given {
  readonly memory: TestMemory;
  readonly theta: MatrixView;
  readonly block: Partition;
  /** The rows that CG starts from; default: drawn ones. */
  readonly previous?: MatrixView;
}

interface Asked extends Partial<RowRegularization> {
  readonly cgSteps: number;
  readonly tiled?: Tiling;
  readonly biased?: boolean;
}

interface Call {
  readonly from: number;
  readonly to: number;
  readonly only?: 'tiled' | 'others';
}

/** What calls of the task leave, and the tiled kernels that they ran. */
function solve({ memory, theta, block, previous: given }: Given, { biased = false, ...asked }: Asked, calls: readonly Call[] = [{ from: 0, to: block.rows }], cancelled = () => false) {
  const { rows } = block;
  const [previous, factors] = [given ?? memory.matrix(rows, theta.columns, 3), memory.matrix(rows, theta.columns, 4)];
  const before = memory.values(previous).slice();
  const bias = new Float32Array(rows).fill(biased ? Number.NaN : 0);
  const partitions = { block, ...(biased ? { fixedBias: column(gamma), bias: column(bias) } : {}) };
  const ran = { rows: 0, groups: 0, passes: 0 };
  const { kernels } = memory;
  const counted = {
    ...kernels,
    startTiledRow: (...args: Parameters<typeof kernels.startTiledRow>) => (ran.rows++, kernels.startTiledRow(...args)),
    passTiles: (...args: Parameters<typeof kernels.passTiles>) => {
      ran.passes++;
      const [, , , , from, , , , , , pass] = args;
      if (pass === 0 && from === 0) ran.groups++;
      kernels.passTiles(...args);
    },
  };
  let [badRow, objective, solved] = [-1, 0, 0];
  for (const call of calls) {
    const params = { lambda, tiled, cgBelow: 2 ** 31 - 1, rank: theta.columns, mean, ...asked, ...call };
    const outcome = update({ ...memory.scope(params, partitions, { fixed: theta, previous, factors }, cancelled), kernels: counted });
    const bad = outcome.values!.badRow as number;
    if (bad >= 0) badRow = badRow < 0 ? bad : Math.min(badRow, bad);
    const { objective: sum, objectives = [sum] } = outcome.values!;
    objective += (objectives as number[]).reduce((all, one) => all + one, 0);
    solved += outcome.rows!;
  }
  expect(memory.values(previous)).toEqual(before);
  const { stride } = factors;
  const row = (values: Float32Array, at: number) => values.slice(at * stride, (at + 1) * stride);
  return { badRow, objective, solved, bias, ran, factors: memory.values(factors).slice(), x: (at: number) => row(memory.values(factors), at), start: (at: number) => Float64Array.from(row(before, at).subarray(0, theta.columns)) };
}

/** A row's ratings without μ and γ. */
function centred(block: Partition, row: number) {
  const { indices, values } = rowOf(block, row);
  return { indices, values: Float64Array.from(values, (value, k) => value - mean - gamma[indices[k]]) };
}

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

/** The largest difference of a row of 1,000 ratings from its twin was 1e-5. */
const ROUNDING = 5e-5;

describe.each(builds)('rows solved tile by tile with %s', (build) => {
  it.each([8, 24, 64, 100, 128])('take the steps of conjugate gradients, rank %i', (rank) => {
    const memory = new TestMemory(build);
    const [theta, block] = [memory.matrix(COLUMNS, rank, 1), blockOf(columnsOfRows)];
    const equations = columnsOfRows.map((_, row) => normalEquations(memory.values(theta), theta.stride, rank, rowOf(block, row), lambda));
    for (const cgSteps of [1, 3, 6]) {
      const { badRow, objective, solved, ran, x, start } = solve({ memory, theta, block }, { cgSteps });
      expect([badRow, solved, ran.rows, ran.groups]).toEqual([-1, block.rows, block.rows, 1]);
      let [expected, squares] = [0, 0];
      columnsOfRows.forEach(({ length }, row) => {
        const twin = updateRow(memory.values(theta), theta.stride, rank, rowOf(block, row), lambda, false, start(row), cgSteps)!;
        expect(norm(x(row).subarray(rank))).toBe(0);
        expect(relativeDistance(x(row), twin), `row ${row} of ${length}, ${cgSteps} steps`).toBeLessThan(ROUNDING);
        expected += objectiveOf(equations[row], x(row));
        squares += squaresOf(rowOf(block, row).values);
      });
      expect(Math.abs(objective - expected) / squares).toBeLessThan(1e-7);
    }
  });

  it.each([8, 24, 64, 100, 128])('solve biases beside factors, rank %i', (rank) => {
    const memory = new TestMemory(build);
    const [theta, block] = [lifted(memory, rank), blockOf(columnsOfRows)];
    const regularization = { lambda, exponent: 0.5, offset: 2, biasLambda: 0.1, damping: 3 };
    const equations = columnsOfRows.map(({ length: n }, row) => shifted(biasedEquations(memory.values(theta), theta.stride, rank, centred(block, row)), lambda * n ** 0.5 + 2, 0.1 * n + 3));
    for (const cgSteps of [1, 3, 6]) {
      const { badRow, objective, bias, ran, x, start } = solve({ memory, theta, block }, { cgSteps, biased: true, ...regularization });
      expect([badRow, ran.rows]).toEqual([-1, block.rows]);
      let [expected, squares] = [0, 0];
      columnsOfRows.forEach(({ length: n }, row) => {
        const shifts = { shift: lambda * n ** 0.5 + 2, ownShift: 0.1 * n + 3 };
        const ratings = centred(block, row);
        const twin = updateBiasedRow(memory.values(theta), theta.stride, rank, ratings, shifts, false, start(row), cgSteps)!;
        const found = [...x(row).subarray(0, rank), bias[row]];
        expect(norm(x(row).subarray(rank))).toBe(0);
        // The twin knows ‖b‖, and so may end a step before the kernels do.
        expect(relativeDistance(found, twin), `row ${row} of ${n}, ${cgSteps} steps`).toBeLessThan(cgSteps < 6 ? ROUNDING : 1e-3);
        expected += objectiveOf(equations[row], found);
        squares += squaresOf(ratings.values);
      });
      expect(Math.abs(objective - expected) / squares).toBeLessThan(1e-6);
    }
  });

  it('are those with as many ratings as the tiling names: the others have the bits of a call without one', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(COLUMNS, 24, 1);
    const block = ratingBlock([0, 39, 40, 41, 3, 0, 300, 301, 40, 250, 39, 700, 0], COLUMNS, 2);
    const inTiling = [2, 3, 6, 8, 9];
    for (const biased of [false, true]) {
      const asked = { cgSteps: 3, biased };
      const [mixed, plain] = [solve({ memory, theta, block }, { ...asked, tiled: { from: 40, to: 300, tileRows: 64 } }), solve({ memory, theta, block }, { ...asked, tiled: undefined })];
      expect([mixed.ran.rows, mixed.solved, plain.ran.rows]).toEqual([inTiling.length, block.rows, 0]);
      for (let row = 0; row < block.rows; row++) {
        if (inTiling.includes(row)) expect(relativeDistance([...mixed.x(row), mixed.bias[row]], [...plain.x(row), plain.bias[row]]), `row ${row}`).toBeLessThan(ROUNDING);
        else expect([...mixed.x(row), mixed.bias[row]], `row ${row}`).toEqual([...plain.x(row), plain.bias[row]]);
      }
      expect(mixed.objective / plain.objective).toBeCloseTo(1, 6);
    }
  });

  it('have the same bits in groups that fill the scratch memory and alone', () => {
    const memory = new TestMemory(build);
    // Tiles of one row of Θ: the list of a row's tiles takes most of its room.
    const [theta, block] = [memory.matrix(16_000, 24, 1), ratingBlock(Array.from({ length: 400 }, (_, row) => 20 + (row % 37)), 16_000, 2)];
    const asked = { cgSteps: 2, tiled: { ...tiled, tileRows: 1 } };
    const [together, alone] = [solve({ memory, theta, block }, asked), solve({ memory, theta, block }, asked, Array.from({ length: block.rows }, (_, row) => ({ from: row, to: row + 1 })))];
    expect(together.ran.groups).toBeGreaterThan(1);
    expect(together.ran.groups).toBeLessThan(5);
    expect(alone.ran.groups).toBe(block.rows);
    expect(together.factors).toEqual(alone.factors);
    expect(together.objective / alone.objective).toBeCloseTo(1, 12);
    for (const row of [0, 170, 399]) expect(relativeDistance(together.x(row), updateRow(memory.values(theta), theta.stride, 24, rowOf(block, row), lambda, false, together.start(row), 2)!)).toBeLessThan(ROUNDING);
  });

  it.each([false, true])('may come in pieces, with biases: %s', (biased) => {
    const memory = new TestMemory(build);
    const rank = 8;
    const theta = biased ? lifted(memory, rank) : memory.matrix(COLUMNS, rank, 1);
    const lengths = [90, 2 * CHUNK_RATINGS + 33, CHUNK_RATINGS, 50, CHUNK_RATINGS + 1];
    const block = ratingBlock(lengths, COLUMNS, 2);
    const { offsets, values } = block.columns as { offsets: Int32Array; values: Float32Array };
    // Large ratings where pieces meet show one that is lost, doubled or beside another column.
    for (const at of [CHUNK_RATINGS - 1, CHUNK_RATINGS, 2 * CHUNK_RATINGS - 1, 2 * CHUNK_RATINGS, 2 * CHUNK_RATINGS + 32]) values[offsets[1] + at] = 20_000;
    values[offsets[4] + CHUNK_RATINGS] = 20_000;
    const { ran, badRow, x, bias, start, objective } = solve({ memory, theta, block }, { cgSteps: 3, biased });
    expect([ran.rows, badRow]).toEqual([lengths.length, -1]);
    let [expected, squares] = [0, 0];
    lengths.forEach((n, row) => {
      const ratings = biased ? centred(block, row) : rowOf(block, row);
      const given = memory.values(theta);
      const equations = biased ? shifted(biasedEquations(given, theta.stride, rank, ratings), lambda * n, lambda * n) : normalEquations(given, theta.stride, rank, ratings, lambda);
      const twin = biased ? biasedGradients(equations, start(row), 3) : updateRow(given, theta.stride, rank, ratings, lambda, false, start(row), 3)!;
      const found = biased ? [...x(row), bias[row]] : x(row);
      expect(relativeDistance(found, twin), `row of ${n}`).toBeLessThan(2e-5);
      expected += objectiveOf(equations, found);
      squares += squaresOf(ratings.values);
    });
    expect(Math.abs(objective - expected) / squares).toBeLessThan(2e-6);
  });

  it.each([false, true])('of 500,000 ratings lose few digits, with biases: %s', (biased) => {
    const memory = new TestMemory(build);
    const rank = 8;
    const [theta, block] = [lifted(memory, rank), ratingBlock([500_000], COLUMNS, 2)];
    const ratings = biased ? centred(block, 0) : rowOf(block, 0);
    const equations = biased ? shifted(biasedEquations(memory.values(theta), rank, rank, ratings), lambda * 500_000, lambda * 500_000) : normalEquations(memory.values(theta), rank, rank, ratings, lambda);
    const { x, bias, start, objective } = solve({ memory, theta, block }, { cgSteps: 3, biased });
    const found = biased ? [...x(0), bias[0]] : x(0);
    const twin = biased ? biasedGradients(equations, start(0), 3) : conjugateGradient(equations.matrix, equations.bias, start(0), 3);
    // One chain of sums in float32 over all ratings was 20 times as far off.
    expect(relativeDistance(found, twin)).toBeLessThan(6e-5);
    expect(Math.abs(objective - objectiveOf(equations, found)) / squaresOf(ratings.values)).toBeLessThan(5e-6);
  });

  it('number the rows of a tile in 16 bits', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(140_000, 8, 1);
    // Around the ends of tiles of 65,536 rows, in eights and alone.
    const columns = [every(40, 65_516), every(40, 131_060, 1), [0, 65_535, 65_536, 131_071, 131_072, 139_999], every(200, 3, 700)];
    const block = ratingBlock(columns.map(({ length }) => length), theta.rows, 2);
    (block.columns.indices as Uint32Array).set(columns.flat());
    const { x, start } = solve({ memory, theta, block }, { cgSteps: 3, tiled: { ...tiled, tileRows: 65_536 } });
    columns.forEach((_, row) => expect(relativeDistance(x(row), updateRow(memory.values(theta), 8, 8, rowOf(block, row), lambda, false, start(row), 3)!)).toBeLessThan(ROUNDING));
  });

  it('have the same bits for any cut of the rows into tasks, of theirs alone and of the others', () => {
    const cuts = fc.array(fc.nat(12), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.nat(60), fc.nat(3000), fc.constant(0)), { minLength: 1, maxLength: 12 }), fc.constantFrom(3, 16, 40), fc.boolean(), cuts, cuts, fc.boolean(), (lengths, rank, biased, ofTiled, ofOthers, othersFirst) => {
        const memory = new TestMemory(build, 16);
        const [theta, block] = [memory.matrix(COLUMNS, rank, 1), ratingBlock(lengths, COLUMNS, 2)];
        const asked = { cgSteps: 3, biased, tiled: { from: 30, to: 2000, tileRows: 64 } };
        const calls = (only: 'tiled' | 'others', at: readonly number[]) => {
          const edges = [0, ...at.filter((cut) => cut <= lengths.length).sort((a, b) => a - b), lengths.length];
          return edges.slice(1).map((to, k) => ({ from: edges[k], to, only }));
        };
        const ordered = [calls('tiled', ofTiled), calls('others', ofOthers)];
        const [whole, parts] = [solve({ memory, theta, block }, asked), solve({ memory, theta, block }, asked, (othersFirst ? ordered.toReversed() : ordered).flat())];
        expect(new Uint32Array(parts.factors.buffer)).toEqual(new Uint32Array(whole.factors.buffer));
        expect(parts.bias).toEqual(whole.bias);
        expect([parts.solved, parts.ran.rows]).toEqual([block.rows, whole.ran.rows]);
        expect(Math.abs(parts.objective - whole.objective)).toBeLessThanOrEqual(1e-12 * Math.abs(whole.objective));
      }),
      { numRuns: 25, seed: 1 },
    );
  });

  it('report the first of them without a finite solution, and leave the others right', () => {
    const memory = new TestMemory(build);
    const lengths = [30, 2, 41, 35, 3, 42, 37];
    // Columns of the sixth row and of the third alone: all rows have ratings in the same tiles.
    const columns = lengths.map((length, row) => every(length, row, lengths.length));
    const block = blockOf(columns);
    const theta = memory.matrix(COLUMNS, 10, 1);
    const asked = { cgSteps: 3, tiled: { ...tiled, from: 30 } };
    const clean = solve({ memory, theta, block }, asked);
    expect([clean.badRow, clean.ran.rows]).toEqual([-1, 5]);
    const given = memory.values(theta);
    const values = block.columns.values as Float32Array;
    const { offsets } = block.columns as { offsets: Int32Array };
    const spoil: Record<string, (row: number, bad: number) => void> = {
      'a row of Θ': (row, bad) => (given[columns[row].at(-1)! * theta.stride + 3] = bad),
      'a rating': (row, bad) => (values[offsets[row]] = bad),
    };
    const kept = [given.slice(), values.slice()];
    for (const [where, put] of Object.entries(spoil)) {
      for (const bad of [Number.NaN, Infinity]) {
        for (const rows of [[2], [5, 2], [6, 4], [1, 5]]) {
          for (const row of rows) put(row, bad);
          const { badRow, x } = solve({ memory, theta, block }, asked);
          expect({ where, bad, rows, badRow }).toEqual({ where, bad, rows, badRow: Math.min(...rows) });
          for (let row = 0; row < lengths.length; row++) {
            if (rows.includes(row)) expect(x(row).every(Number.isFinite)).toBe(false);
            else expect(x(row)).toEqual(clean.x(row));
          }
          given.set(kept[0]);
          values.set(kept[1]);
        }
      }
    }
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
    const solution = updateRow(memory.values(theta), rank, rank, rowOf(block, 1), lambda, true, new Float64Array(rank), 0)!;
    start.set(solution, rank);
    const { x, objective } = solve({ memory, theta, block, previous }, { cgSteps: 6 });
    expect([...x(0)]).toEqual(Array.from({ length: rank }, () => 0));
    expect(x(1)).toEqual(Float32Array.from(solution));
    const twin = updateRow(memory.values(theta), rank, rank, rowOf(block, 2), lambda, false, Float64Array.from(start.subarray(2 * rank)), 6)!;
    expect(relativeDistance(x(2), twin)).toBeLessThan(ROUNDING);
    const expected = [1, 2].reduce((sum, row) => sum + objectiveOf(normalEquations(memory.values(theta), rank, rank, rowOf(block, row), lambda), x(row)), 0);
    expect(objective / expected).toBeCloseTo(1, 6);
  });

  it('look at the cancel flag between groups, and several times in each pass over many ratings', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(8000, 8, 1);
    const looked = (lengths: readonly number[], asked: Asked) => {
      const given = { memory, theta, block: ratingBlock(lengths, theta.rows, 2), previous: memory.matrix(lengths.length, 8, 3) };
      let looks = 0;
      const whole = solve(given, asked, undefined, () => ++looks < 0);
      const all = looks;
      const until = (limit: number) => {
        looks = 0;
        return solve(given, asked, undefined, () => ++looks > limit);
      };
      return { whole, all, until };
    };
    const groups = looked(Array.from({ length: 1200 }, () => 20), { cgSteps: 1, tiled: { ...tiled, tileRows: 1 } });
    expect(groups.whole.ran.groups).toBe(3);
    expect(groups.until(0)).toMatchObject({ solved: 0, ran: { rows: 0, passes: 0 } });
    expect(groups.until(Math.floor(groups.all / 2)).solved).toBeLessThan(1200);
    const long = looked([700_000], { cgSteps: 3, tiled: { from: 1, to: 1e6, tileRows: 64 } });
    expect(long.whole.ran.passes).toBeGreaterThan(2 * 4);
    // The last looks are those of the passes.
    for (const fewer of [1, 2, 5, 8]) expect(long.until(long.all - fewer).ran.passes).toBe(long.whole.ran.passes - fewer);
  });
});
