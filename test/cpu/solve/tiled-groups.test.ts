/**
 * Groups of the rows that are solved tile by tile: which rows they have, and that no bit depends on the
 * grouping.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { updateRow } from '../../../cpu/reference/update.ts';
import { builds, ratingBlock, relativeDistance, rowOf, TestMemory } from '../scope.ts';
import { type Asked, blockOf, COLUMNS, every, lambda, ROUNDING, solve, tiled } from './tiled.ts';
import { sampleSize } from '../../support/deep.ts';

describe.each(builds)('groups of rows solved tile by tile with %s', (build) => {
  it('have those with as many ratings as the tiling names: the others have the bits of a call without one', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(COLUMNS, 24, 1);
    const block = ratingBlock([0, 39, 40, 41, 3, 0, 300, 301, 40, 250, 39, 700, 0], COLUMNS, 2);
    const inTiling = [2, 3, 6, 8, 9];
    for (const biased of [false, true]) {
      const asked = { cgSteps: 3, biased };
      const [mixed, plain] = [
        solve({ memory, theta, block }, { ...asked, tiled: { from: 40, to: 300, tileRows: 64 } }),
        solve({ memory, theta, block }, { ...asked, tiled: undefined }),
      ];
      expect([mixed.ran.rows, mixed.solved, plain.ran.rows]).toEqual([inTiling.length, block.rows, 0]);
      for (let row = 0; row < block.rows; row++) {
        if (inTiling.includes(row))
          expect(
            relativeDistance([...mixed.x(row), mixed.bias[row]], [...plain.x(row), plain.bias[row]]),
            `row ${row}`,
          ).toBeLessThan(ROUNDING);
        else
          expect([...mixed.x(row), mixed.bias[row]], `row ${row}`).toEqual([
            ...plain.x(row),
            plain.bias[row],
          ]);
      }
      expect(mixed.objective / plain.objective).toBeCloseTo(1, 6);
    }
  });

  it('have the same bits where they fill the scratch memory and with one row', () => {
    const memory = new TestMemory(build);
    // Tiles of one row of Θ: the list of a row's tiles takes most of its room.
    const [theta, block] = [
      memory.matrix(16_000, 24, 1),
      ratingBlock(
        Array.from({ length: 400 }, (_, row) => 20 + (row % 37)),
        16_000,
        2,
      ),
    ];
    const asked = { cgSteps: 2, tiled: { ...tiled, tileRows: 1 } };
    const [together, alone] = [
      solve({ memory, theta, block }, asked),
      solve(
        { memory, theta, block },
        asked,
        Array.from({ length: block.rows }, (_, row) => ({ from: row, to: row + 1 })),
      ),
    ];
    expect(together.ran.groups).toBeGreaterThan(1);
    expect(together.ran.groups).toBeLessThan(5);
    expect(alone.ran.groups).toBe(block.rows);
    expect(together.factors).toEqual(alone.factors);
    expect(together.objective / alone.objective).toBeCloseTo(1, 12);
    for (const row of [0, 170, 399])
      expect(
        relativeDistance(
          together.x(row),
          updateRow(
            memory.values(theta),
            theta.stride,
            24,
            rowOf(block, row),
            lambda,
            false,
            together.start(row),
            2,
          )!,
        ),
      ).toBeLessThan(ROUNDING);
  });

  it('have the same bits for any cut of the rows into tasks, of theirs and of the others', () => {
    const cuts = fc.array(fc.nat(12), { maxLength: 4 });
    const memory = new TestMemory(build, 16);
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(60), fc.nat(3000), fc.constant(0)), { minLength: 1, maxLength: 12 }),
        fc.constantFrom(3, 16, 40),
        fc.boolean(),
        cuts,
        cuts,
        fc.boolean(),
        (lengths, rank, biased, ofTiled, ofOthers, othersFirst) => {
          memory.reset();
          const [theta, block] = [memory.matrix(COLUMNS, rank, 1), ratingBlock(lengths, COLUMNS, 2)];
          const asked = { cgSteps: 3, biased, tiled: { from: 30, to: 2000, tileRows: 64 } };
          const calls = (only: 'tiled' | 'others', at: readonly number[]) => {
            const edges = [
              0,
              ...at.filter((cut) => cut <= lengths.length).sort((a, b) => a - b),
              lengths.length,
            ];
            return edges.slice(1).map((to, k) => ({ from: edges[k], to, only }));
          };
          const ordered = [calls('tiled', ofTiled), calls('others', ofOthers)];
          const [whole, parts] = [
            solve({ memory, theta, block }, asked),
            solve({ memory, theta, block }, asked, (othersFirst ? ordered.toReversed() : ordered).flat()),
          ];
          expect(new Uint32Array(parts.factors.buffer)).toEqual(new Uint32Array(whole.factors.buffer));
          expect(parts.bias).toEqual(whole.bias);
          expect([parts.solved, parts.ran.rows]).toEqual([block.rows, whole.ran.rows]);
          expect(Math.abs(parts.objective - whole.objective)).toBeLessThanOrEqual(
            1e-12 * Math.abs(whole.objective),
          );
        },
      ),
      { numRuns: sampleSize(25), seed: 1 },
    );
  });

  it('report the first row without a finite solution, and leave the others right', () => {
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
    const cases = Object.entries(spoil).flatMap(([where, put]) =>
      [Number.NaN, Infinity].flatMap((bad) =>
        [[2], [5, 2], [6, 4], [1, 5]].map((rows) => ({ where, put, bad, rows })),
      ),
    );
    for (const { where, put, bad, rows } of cases) {
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
  });

  it('end where the task is cancelled: between each other, and several times in each pass over many ratings', () => {
    const memory = new TestMemory(build);
    const theta = memory.matrix(8000, 8, 1);
    const looked = (lengths: readonly number[], asked: Asked) => {
      const given = {
        memory,
        theta,
        block: ratingBlock(lengths, theta.rows, 2),
        previous: memory.matrix(lengths.length, 8, 3),
      };
      let looks = 0;
      const whole = solve(given, asked, undefined, () => ++looks < 0);
      const all = looks;
      const until = (limit: number) => {
        looks = 0;
        return solve(given, asked, undefined, () => ++looks > limit);
      };
      return { whole, all, until };
    };
    const groups = looked(
      Array.from({ length: 1200 }, () => 20),
      { cgSteps: 1, tiled: { ...tiled, tileRows: 1 } },
    );
    expect(groups.whole.ran.groups).toBe(3);
    expect(groups.until(0)).toMatchObject({ solved: 0, ran: { rows: 0, passes: 0 } });
    expect(groups.until(Math.floor(groups.all / 2)).solved).toBeLessThan(1200);
    const long = looked([700_000], { cgSteps: 3, tiled: { from: 1, to: 1e6, tileRows: 64 } });
    expect(long.whole.ran.passes).toBeGreaterThan(2 * 4);
    // Each pass ends with its checks.
    for (const fewer of [1, 2, 5, 8])
      expect(long.until(long.all - fewer).ran.passes).toBe(long.whole.ran.passes - fewer);
  });
});
