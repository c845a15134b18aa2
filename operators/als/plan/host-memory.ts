import {
  blockBytes,
  blockLimit,
  loadingBytes,
  partLoadingBytes,
  spilledLoadingBytes,
} from '../../planner/sizes.ts';
import { isInBlocks, sides, verticalParts } from './grid.ts';
import type { AlsProblem } from './problem.ts';

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
export function copiedRows({ grid, rows }: AlsProblem): number {
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
