import { formatCount } from '../../engine/format.ts';
import { CACHED_BYTES, type DeviceInfo } from '../../engine/plan/device-info.ts';
import type { RowRange, Slice } from '../../engine/plan/stages.ts';
import { factorStride } from '../planner/sizes.ts';
import { balancedRanges, offsetsOf } from '../ratings/row-ranges.ts';
import type { AlsParams } from './als-params.ts';
import { ALL_ROWS } from './solver-choice.ts';
import type { SolverChoice, Tiling } from '../tasks/task-types.ts';

/**
 * Bytes of a tile, a group of adjacent rows of the fixed side. It takes half of a second-level cache of 512
 * KiB; the other half is for the vectors of the solved rows.
 */
const TILE_BYTES = 256 << 10;

/**
 * A row is solved tile by tile only if it has, on average, this number of ratings in each tile. With fewer,
 * reading the row's vectors again for each tile costs more than the usual way, which copies the θ of a row's
 * ratings into panels once.
 */
const RATINGS_IN_TILE = 4;

/**
 * Rows with more ratings are not solved tile by tile, nor are any rows if there are more tiles, because their
 * lists do not fit into a task's scratch memory.
 */
const MOST_RATINGS = 2.2e6;
const MOST_TILES = 2 ** 17;

/**
 * Rows are solved in groups, and each row of the fixed side is read from memory once for the whole group. A
 * group has at most this number of ratings per row of the fixed side.
 */
const MOST_OF_GROUP = 16;

/**
 * If such groups would leave threads idle, smaller ones are used, with at least this number of ratings per
 * row of the fixed side.
 */
const LEAST_OF_GROUP = 4;

/**
 * Which rows are solved tile by tile, and two numbers from which the groups of these rows are made: the
 * number of rows of the fixed side, and the number of tasks that run at the same time.
 */
export interface Tiled {
  readonly tiling: Tiling | undefined;
  readonly fixedRows: number;
  readonly parallelism: number;
}

/**
 * Chooses the rows that a CPU solves tile by tile (cpu/assembly/solve/tiles.ts): long rows, by conjugate
 * gradients, if the fixed side exceeds the caches. For a smaller fixed side it is faster to copy the θ of
 * each row's ratings into panels. The choice depends only on parameters and sizes, so a row's bits do not
 * depend on the number of threads or parts. Returns undefined if no rows are solved this way, for example at
 * a small rank, where forming A costs less than the steps.
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
 * The row ranges (slices) of the tasks that solve a part. The first tasks solve the rows of the tiling in
 * groups, since these take longest; then `slices` solve all other rows. Groups are as large as useful, and
 * their number is a multiple of `parallelism`. A group consists of runs of adjacent rows. The runs, and the
 * sums over each run, depend only on the ratings, so the result has the same bits for any groups.
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
 * Cuts a slice into runs, which are ranges of rows with about one rating for each row of the fixed side. Runs
 * depend only on the slice's rows. If ratings are in files, each part starts where a slice starts, so the
 * runs are the same as for ratings in memory.
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

/** The reason that a plan prints for a tiling. */
export function tiledReason({ from, tileRows }: Tiling): string {
  return `rows with ${formatCount(from)} ratings or more are solved together, tile by tile: ${formatCount(tileRows)} rows of the fixed side at a time, which a core's cache holds`;
}
