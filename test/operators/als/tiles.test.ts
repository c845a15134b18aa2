/** Tests which rows are solved tile by tile, and which tasks solve them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RowRange, Slice } from '../../../engine/plan/stages.ts';
import { ALL_ROWS, chooseSolver } from '../../../operators/als/solver-choice.ts';
import { isTiled, tiledSlices, tilingOf } from '../../../operators/als/tiles.ts';
import { balancedRanges, offsetsOf } from '../../../operators/ratings/row-ranges.ts';
import { cpuInfo, h200Info } from '../../support/devices/device-info.ts';
import type { Tiling } from '../../../operators/tasks/task-types.ts';
import { sampleSize } from '../../support/deep.ts';

const explicit = { rank: 64, implicitPrefs: false, nonnegative: false };
const cg = (cgSteps: number) => ({ cgBelow: ALL_ROWS, cgSteps });
const movielens = 138_493;

describe('the tiling of a fixed side', () => {
  it('has tiles of 256 KiB, and rows of four ratings a tile on average', () => {
    // 1,024 rows of 256 bytes, in 136 tiles.
    expect(tilingOf(explicit, cg(6), movielens, cpuInfo)).toEqual({ from: 544, to: 2.2e6, tileRows: 1024 });
    // 630 rows of 416 bytes, in 220 tiles.
    expect(tilingOf({ ...explicit, rank: 100 }, cg(3), movielens, cpuInfo)).toEqual({
      from: 880,
      to: 2.2e6,
      tileRows: 630,
    });
    expect(
      tilingOf(
        explicit,
        chooseSolver({ rank: 64, solver: 'auto', cgSteps: 'auto', nonnegative: false }),
        movielens,
        cpuInfo,
      ),
    ).toEqual({ from: 544, to: 2.2e6, tileRows: 1024 });
  });

  it.each<[string, Parameters<typeof tilingOf>]>([
    ['a GPU', [explicit, cg(6), movielens, h200Info]],
    ['implicit data', [{ ...explicit, implicitPrefs: true }, cg(6), movielens, cpuInfo]],
    ['non-negative factors', [{ ...explicit, nonnegative: true }, cg(6), movielens, cpuInfo]],
    ['Cholesky', [explicit, { cgBelow: 0, cgSteps: 6 }, movielens, cpuInfo]],
    ['Cholesky of long rows alone', [explicit, { cgBelow: 900, cgSteps: 6 }, movielens, cpuInfo]],
    ['more tiles than a task lists', [explicit, cg(6), 2 ** 27 + 1, cpuInfo]],
  ])('is left out for %s', (_, given) => {
    expect(tilingOf(...given)).toBeUndefined();
  });

  it('begins with a fixed side of 16 MiB, and ends with 131,072 tiles', () => {
    expect(tilingOf(explicit, cg(6), 65_535, cpuInfo)).toBeUndefined();
    expect(tilingOf(explicit, cg(6), 65_536, cpuInfo)).toEqual({ from: 256, to: 2.2e6, tileRows: 1024 });
    expect(tilingOf(explicit, cg(6), 2 ** 27, cpuInfo)).toEqual({ from: 524_288, to: 2.2e6, tileRows: 1024 });
  });

  it('is left out where forming A costs less than the steps', () => {
    expect(tilingOf(explicit, cg(11), movielens, cpuInfo)).toBeDefined();
    expect(tilingOf(explicit, cg(12), movielens, cpuInfo)).toBeUndefined();
    expect(tilingOf({ ...explicit, rank: 40 }, cg(6), movielens, cpuInfo)).toBeDefined();
    expect(tilingOf({ ...explicit, rank: 40 }, cg(7), movielens, cpuInfo)).toBeUndefined();
    // Features count with their padding.
    expect(tilingOf({ ...explicit, rank: 33 }, cg(6), movielens, cpuInfo)).toBeDefined();
  });
});

const tiling: Tiling = { from: 50, to: 400, tileRows: 8 };
const offsetsFor = (lengths: readonly number[]) => Int32Array.from(offsetsOf(Int32Array.from(lengths)));
/** The slices of rows of these lengths. */
const slicesOf = (
  lengths: readonly number[],
  slices: readonly RowRange[],
  fixedRows: number,
  parallelism = 2,
  offsets: Int32Array | Float64Array = offsetsFor(lengths),
) => tiledSlices(offsets, slices, { tiling, fixedRows, parallelism });
const usual = (lengths: readonly number[], parts = 4) => balancedRanges(offsetsFor(lengths), parts);
const cover = (ranges: readonly RowRange[], row: number) =>
  ranges.filter(({ from, to }) => from <= row && row < to).length;

describe('the slices of an update', () => {
  it('are as they were without a tiling, and without rows in it', () => {
    const lengths = [3, 49, 401, 0, 7, 2000];
    expect(
      tiledSlices(offsetsFor(lengths), usual(lengths), { tiling: undefined, fixedRows: 100, parallelism: 2 }),
    ).toEqual(usual(lengths));
    expect(slicesOf(lengths, usual(lengths), 100)).toEqual(usual(lengths));
    expect(slicesOf([], [], 100)).toEqual([]);
  });

  it('solve each row once: those of the tiling in groups, which come first, the others as before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(60), fc.integer({ min: 40, max: 410 }), fc.constant(0), fc.constant(9000)), {
          minLength: 1,
          maxLength: 60,
        }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 9 }),
        (lengths, fixedRows, parts, parallelism) => {
          const slices = slicesOf(lengths, usual(lengths, parts), fixedRows, parallelism);
          const inTiling = lengths.map((n) => n >= 50 && n <= 400);
          expect(lengths.map((n) => isTiled(n, tiling))).toEqual(inTiling);
          if (!inTiling.includes(true)) {
            expect(slices).toEqual(usual(lengths, parts));
            return;
          }
          const of = (only: string) => slices.filter(({ params }) => params?.only === only);
          const [groups, others] = [of('tiled'), of('others')];
          expect(slices).toEqual([...groups, ...others]);
          expect(others.map(({ from, to }) => ({ from, to }))).toEqual(usual(lengths, parts));
          lengths.forEach((_, row) => expect(cover(inTiling[row] ? groups : others, row)).toBe(1));
          const runsOf = (all: readonly Slice[]) =>
            all
              .filter(({ params }) => params?.only === 'tiled')
              .flatMap(({ from, params }) => [from, ...(params!.runs as number[])]);
          const runs = runsOf(groups);
          expect(runs).toEqual(runs.toSorted((a, b) => a - b));
          expect(new Set(runs).size).toBe(runs.length);
          // The runs, and so their sums, equal those for one thread.
          expect(runs).toEqual(runsOf(slicesOf(lengths, usual(lengths, parts), fixedRows, 1)));
          const ratings = lengths.reduce((sum, n) => sum + (isTiled(n, tiling) ? n : 0), 0);
          const fewest = Math.ceil(ratings / (16 * fixedRows));
          // The same number of groups for each thread, unless that leaves fewer than 4 ratings for a row of
          // the fixed side.
          const asked = Math.max(
            fewest,
            Math.min(Math.ceil(ratings / (4 * fixedRows)), parallelism * Math.ceil(fewest / parallelism)),
          );
          expect(groups.length).toBeLessThanOrEqual(asked);
          const within = ({ from, to }: RowRange) =>
            lengths.slice(from, to).reduce((sum, n) => sum + (isTiled(n, tiling) ? n : 0), 0);
          const largestRun = Math.max(
            ...runs.map((from, k) => within({ from, to: runs[k + 1] ?? lengths.length })),
          );
          for (const group of groups)
            expect(within(group)).toBeLessThanOrEqual(ratings / asked + 2 * largestRun);
          // A part that starts with a slice has the runs of the whole.
          const { from } = usual(lengths, parts).at(-1)!;
          const last = tiledSlices(
            offsetsFor(lengths.slice(from)),
            [{ from: 0, to: lengths.length - from }],
            { tiling, fixedRows, parallelism },
          );
          expect(runsOf(last).map((row) => row + from)).toEqual(runs.filter((row) => row >= from));
        },
      ),
      { numRuns: sampleSize(200), seed: 1 },
    );
  });

  it('have groups as large as pays, for as many threads as there are', () => {
    const lengths = Array.from({ length: 1000 }, () => 400);
    const groupsOf = (fixedRows: number, parallelism: number, all = lengths) =>
      slicesOf(all, usual(all, 1), fixedRows, parallelism).filter(({ params }) => params?.only === 'tiled');
    // 400,000 ratings: 16 for each of 25,000 rows, in runs of one for each.
    expect(groupsOf(25_000, 1)).toEqual([
      {
        from: 0,
        to: 1000,
        params: { only: 'tiled', runs: Array.from({ length: 15 }, (_, k) => Math.floor((k + 1) * 62.5)) },
      },
    ]);
    expect(groupsOf(25_000, 2).map(({ from, to }) => [from, to])).toEqual([
      [0, 500],
      [500, 1000],
    ]);
    expect(groupsOf(25_000, 3)).toHaveLength(3);
    // No fewer than 4 ratings for each row of the fixed side.
    expect(groupsOf(25_000, 64)).toHaveLength(4);
    expect(groupsOf(12_500, 1)).toHaveLength(2);
    expect(groupsOf(12_500, 3)).toHaveLength(3);
    // No more ratings than the scratch memory of a task holds.
    expect(
      groupsOf(
        1e6,
        1,
        Array.from({ length: 20_000 }, () => 400),
      ),
    ).toHaveLength(4);
  });

  it('are the same from row pointers of more ratings than a block has', () => {
    const lengths = [60, 3, 200, 0, 70, 500, 90];
    expect(slicesOf(lengths, usual(lengths), 10, 2, offsetsOf(Int32Array.from(lengths)))).toEqual(
      slicesOf(lengths, usual(lengths), 10),
    );
  });
});
