import { partBytes } from '../../../engine/plan/bound-plan.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import {
  blockBytes,
  blockLimit,
  loadingBytes,
  partLoadingBytes,
  spilledLoadingBytes,
} from '../../planner/sizes.ts';
import { alsDataSets, estimatedSizes } from './data-sets.ts';
import {
  type AlsDataSet,
  isInBlocks,
  sides,
  verticalParts,
  type AlsProblem,
  otherSide,
  type Side,
  stepsTogether,
} from './problem.ts';

/**
 * Bytes that a thread holds while it writes factors to a file: the factors of one encoded block (frame) of
 * the file, and the block itself.
 */
const WRITTEN_BYTES = 32 << 20;

/**
 * The largest number of bytes of host memory that a run needs: while ratings are loaded, while steps run
 * (`peak`), or at the end.
 */
export function hostMemory(problem: AlsProblem, peak = 0): number {
  const { device, params, rows } = problem;
  const tests = problem.testRatings === undefined ? 0 : blockBytes(rows.users, problem.testRatings);
  const bytes = Math.max(endBytes(problem), loadedBytes(problem) + tests, peak);
  const copies = device.ownMemory ? 2 * 4 * params.rank * copiedRows(problem) : 0;
  return leavesHost(problem) ? Math.max(bytes, copies) : bytes + copies;
}

/** Rows whose factors are copied to host memory at the end: parts in files stay there. */
function copiedRows({ grid, rows }: AlsProblem): number {
  return sides.reduce((sum, side) => sum + (grid[side].factors === 'spill' ? 0 : rows[side]), 0);
}

function isInFiles({ grid }: AlsProblem): boolean {
  return sides.every((side) => grid[side].ratings === 'spill');
}

/** Bytes while ratings are loaded and sorted. */
export function loadedBytes(problem: AlsProblem): number {
  const { grid, profile, rows } = problem;
  const nz = profile.ratings;
  if (isInFiles(problem)) {
    // While a part is cut into blocks, memory has the row pointers of all of them.
    const pointers = sides.map((side) =>
      isInBlocks(grid, side) ? (4 * verticalParts(grid, side) * rows[side]) / grid[side].q : 0,
    );
    const ratings = Math.ceil(nz / Math.min(...sides.map((side) => grid[side].q)));
    return partLoadingBytes(ratings) + Math.max(...pointers);
  }
  return nz > blockLimit.ratings ? loadingBytes(nz) : spilledLoadingBytes(nz);
}

/**
 * Bytes at the end of a run: a copy of all factors in host memory, and the data that each thread is writing
 * to files. Returns 0 if the ratings are in memory, since they take more than that.
 */
function endBytes(problem: AlsProblem): number {
  if (!isInFiles(problem)) return 0;
  const { params, host } = problem;
  const copied = 4 * (params.rank + 2) * copiedRows(problem);
  return copied + Math.min(copied, host.parallelism * WRITTEN_BYTES);
}

/**
 * True if the ratings are removed from host memory after the first round, before factors are copied from the
 * device. That is done if a single device keeps all ratings, in several parts.
 */
function leavesHost({ device, compute, profile, grid }: AlsProblem): boolean {
  return (
    device.ownMemory &&
    compute.length === 1 &&
    profile.ratings > blockLimit.ratings &&
    sides.every((side) => grid[side].ratings === 'device')
  );
}

/**
 * Bytes of ratings in files that stay in addition to what a plan's steps read: the parts that were cut into
 * blocks.
 */
export function keptFileBytes({ grid, rows, profile }: AlsProblem): number {
  return sides
    .filter((side) => grid[side].ratings === 'spill' && isInBlocks(grid, side))
    .reduce((sum, side) => sum + blockBytes(rows[side], profile.ratings), 0);
}

/**
 * The roles of data sets that leastBytes counts. For sums the value is the number of versions of a part that
 * exist at the same time. `resident`: all parts of a device stay there.
 */
const counted: Partial<Readonly<Record<AlsDataSet['role'], 'factors' | 'whole' | 'resident' | number>>> = {
  factors: 'factors',
  whole: 'whole',
  gram: 'resident',
  shifts: 'resident',
  prior: 'resident',
  equations: 1,
  gradients: 1,
  direction: 2,
  products: 1,
  solution: 1,
};

/**
 * The largest part has at most this number of times the average number of ratings: parts are cut to have
 * about the same sum of ratings and rows, so their ratings differ a little.
 */
const UNEQUAL = 1.05;

/**
 * Estimates the memory that a grid needs from its large data sets (eq. 8 of cuMF): bytes on a device, bytes
 * on the host, and bytes of the largest buffer. The planner uses it to select the grids to try. Whether a
 * grid really fits is decided later by expanding the plan's steps, which shows when each part is in memory.
 *
 * Parts of a side that are counted on a device:
 *
 *   data                                      parts
 *   Gram matrices, shifts of implicit rows    all of this device
 *   factors that stay on the device           all of this device, and one part in a second version
 *   factors that are copied for each use      2 in use, 2 that are copied back
 *   ratings that are copied for each use      2
 *   equations, gradients, products            1; with stepsTogether one of each device
 *   directions of conjugate gradients         the same, in two versions
 */
export function leastBytes(problem: AlsProblem): Record<'device' | 'host' | 'buffer', number> {
  const { grid, device, params, places, rows } = problem;
  const least = { device: 0, host: (device.ownMemory ? 2 : 1) * 4 * params.rank * copiedRows(problem) };
  const passing = { users: 0, items: 0 };
  const buffers: number[] = [];
  // If there are many equal parts, the sizes of a few are computed and multiplied by `times`.
  const shownOf = (side: Side) => ({ ...grid[side], q: Math.min(grid[side].q, 2 * places.length) });
  const shown = { users: shownOf('users'), items: shownOf('items') };
  for (const set of alsDataSets({ ...problem, grid: shown }, estimatedSizes(problem, shown))) {
    const { role, side, parts, by } = set;
    const [{ rows: own, bytes: ofRatings = 0, at: home }] = parts;
    const bytes = partBytes({ devices: [device] }, set, 0, device.place);
    const columns = by === 'block' ? verticalParts(grid, side) / verticalParts(shown, side) : 1;
    const times = (columns * grid[side].q) / shown[side].q;
    const here = times * parts.filter(({ at }) => at.includes(device.place)).length;
    if (role === 'ratings') {
      if (home[0] !== SPILL) least.host += times * parts.length * ofRatings;
      // A device that shares the host's memory reads ratings in place.
      const each = device.ownMemory ? ofRatings : 0;
      least.device += here * each;
      if (here === 0) passing[side] += 2 * each;
      buffers.push((ofRatings - 4 * (own + 1)) / 2);
      continue;
    }
    const kind = counted[role];
    if (kind === undefined) continue;
    buffers.push(bytes);
    if (kind === 'whole') least.device += bytes;
    else if (kind === 'resident') least.device += (parts.length === 1 ? 1 : here) * bytes;
    else if (kind !== 'factors')
      passing[side] += kind * bytes * (stepsTogether(problem, side) ? places.length : 1);
    else if (here > 0) least.device += (here + 1) * bytes;
    else {
      // Of a side in files, only the parts that are being read and written are in host memory.
      least.host += 4 * params.rank * (home[0] === SPILL ? 4 * own : rows[side] + own);
      passing[side] += 4 * bytes;
      if (isInBlocks(grid, otherSide[side])) passing[otherSide[side]] += 2 * bytes;
    }
  }
  least.device += Math.max(passing.users, passing.items);
  return { ...least, buffer: UNEQUAL * Math.max(...buffers) };
}

/**
 * The number of ratings in a grid's largest block, as a fraction of the most that a block can hold (0 if one
 * block holds all ratings). The ratings by user are sorted as whole rows first and cut into blocks later, so
 * for users a part counts as one block.
 */
export function blockShare({
  profile: { ratings: nz },
  grid,
}: Pick<AlsProblem, 'grid'> & { readonly profile: Pick<AlsProblem['profile'], 'ratings'> }): number {
  const blocks = Math.min(grid.users.q, grid.items.q * verticalParts(grid, 'items'));
  return nz <= blockLimit.ratings ? 0 : (UNEQUAL * nz) / blocks / blockLimit.ratings;
}
