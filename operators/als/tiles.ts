import { formatCount } from '../../engine/format.ts';
import { CACHED_BYTES, type DeviceInfo } from '../../engine/plan/device-info.ts';
import type { RowRange, Slice } from '../../engine/plan/stages.ts';
import { factorStride } from '../planner/sizes.ts';
import { balancedRanges, offsetsOf } from '../ratings/row-ranges.ts';
import type { AlsParams } from './als-params.ts';
import { ALL_ROWS } from './solver-choice.ts';
import type { SolverChoice, Tiling } from '../tasks/task-types.ts';

/** Bytes of a tile: half of a second-level cache of 512 KiB. The other half is for the rows' own vectors. */
const TILE_BYTES = 256 << 10;

/**
 * Least average number of a row's ratings in each tile: with more, reading the row's vectors costs less than
 * panels do.
 */
const RATINGS_IN_TILE = 4;

/** Most ratings of a row, and most tiles, whose lists fit into a task's scratch memory. */
const MOST_RATINGS = 2.2e6;
const MOST_TILES = 2 ** 17;

/**
 * Most ratings of a group of rows, per row of the fixed side. Each fixed row is read from memory once for
 * the whole group.
 */
const MOST_OF_GROUP = 16;

/** The minimum for smaller groups, which are used if larger ones would leave threads idle. */
const LEAST_OF_GROUP = 4;

/**
 * A tiling, and two numbers that determine the groups of its rows: the number of rows of the fixed side, and
 * the number of tasks that run at the same time.
 */
export interface Tiled {
  readonly tiling: Tiling | undefined;
  readonly fixedRows: number;
  readonly parallelism: number;
}

/**
 * The rows that a CPU solves tile by tile (cpu/assembly/solve/tiled/rows.ts): long rows, by conjugate
 * gradients, from a fixed side that exceeds the caches. For a smaller fixed side, panels are faster than
 * gathering again. Depends only on parameters and sizes, so a row's bits do not depend on the number of
 * threads or parts. Undefined if there are no such rows: with few features, forming A costs less than the
 * steps.
 */
export function tilingOf(
  { rank, implicitPrefs, nonnegative }: Pick<AlsParams, 'rank' | 'implicitPrefs' | 'nonnegative'>,
  { cgBelow, cgSteps }: SolverChoice,
  fixedRows: number,
  { kind, strideStep }: Pick<DeviceInfo, 'kind' | 'strideStep'>,
): Tiling | undefined {
  const stride = factorStride(rank, strideStep);
  if (
    kind !== 'cpu' ||
    implicitPrefs ||
    nonnegative ||
    cgBelow < ALL_ROWS ||
    stride <= 5 * (cgSteps + 1) ||
    fixedRows * stride * 4 < CACHED_BYTES
  )
    return undefined;
  const tileRows = Math.max(1, Math.min(2 ** 16, Math.floor(TILE_BYTES / (4 * stride))));
  const tiles = Math.ceil(fixedRows / tileRows);
  return tiles > MOST_TILES ? undefined : { from: RATINGS_IN_TILE * tiles, to: MOST_RATINGS, tileRows };
}

/**
 * Slices of an update. The first ones solve the rows of the tiling in groups, since these take longest; then
 * `slices` solve all other rows. Groups are as large as useful, in equal numbers for each of `parallelism`
 * threads. They consist of runs of rows. The runs, and the sums over a run's rows, depend only on the
 * ratings, so no bit depends on the groups.
 */
export function tiledSlices(
  offsets: Int32Array | Float64Array,
  slices: readonly RowRange[],
  { tiling, fixedRows, parallelism }: Tiled,
): Slice[] {
  if (tiling === undefined) return [...slices];
  const lengths = new Int32Array(offsets.length - 1);
  for (let row = 0; row < lengths.length; row++) {
    const n = offsets[row + 1] - offsets[row];
    if (isTiled(n, tiling)) lengths[row] = n;
  }
  const tiled = offsetsOf(lengths);
  const ratings = tiled[lengths.length];
  if (ratings === 0) return [...slices];
  const groupsOf = (size: number) => Math.ceil(ratings / (size * fixedRows));
  const [fewest, most] = [
    Math.max(groupsOf(MOST_OF_GROUP), Math.ceil(ratings / MOST_RATINGS)),
    groupsOf(LEAST_OF_GROUP),
  ];
  const runs = slices.flatMap((slice) => runsOf(tiled, slice, fixedRows));
  const groups = balancedRanges(
    Float64Array.from([0, ...runs.map(({ to }) => tiled[to])]),
    Math.max(fewest, Math.min(most, parallelism * Math.ceil(fewest / parallelism))),
    0,
  );
  return [
    ...groups.map(({ from, to }) => ({
      from: runs[from].from,
      to: runs[to - 1].to,
      params: { only: 'tiled', runs: runs.slice(from + 1, to).map((run) => run.from) },
    })),
    ...slices.map((range) => ({ ...range, params: { only: 'others' } })),
  ];
}

/**
 * The runs of a slice. A run has about one rating for each row of the fixed side. Runs depend only on the
 * slice's rows. Parts of ratings in files start where slices start, so they have the same runs as a whole
 * block.
 */
function runsOf(tiled: Float64Array, { from, to }: RowRange, fixedRows: number): RowRange[] {
  const ratings = tiled[to] - tiled[from];
  if (ratings === 0) return [];
  const own = tiled.subarray(from, to + 1).map((offset) => offset - tiled[from]);
  return balancedRanges(own, Math.ceil(ratings / fixedRows), 0).map((run) => ({
    from: from + run.from,
    to: from + run.to,
  }));
}

/** True for a row of `n` ratings that is solved tile by tile. */
export function isTiled(n: number, { from, to }: Tiling): boolean {
  return n >= from && n <= to;
}

/** Sentence for a plan. */
export function tiledReason({ from, tileRows }: Tiling): string {
  return `rows with ${formatCount(from)} ratings or more are solved together, tile by tile: ${formatCount(tileRows)} rows of the fixed side at a time, which a core's cache holds`;
}
