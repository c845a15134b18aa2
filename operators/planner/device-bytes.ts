import { equationColumns } from '../tasks/equation-tasks.ts';
import { gradientColumns } from '../tasks/vector-tasks.ts';
import { isInBlocks, otherSide, type Side, sides, sumsOf, verticalParts } from '../als/plan/grid.ts';
import type { AlsProblem } from '../als/plan/problem.ts';
import { blockBytes, blockLimit, factorBytes } from './sizes.ts';

type Sized = Pick<AlsProblem, 'profile' | 'params' | 'compute' | 'device' | 'rows' | 'grid'>;

/**
 * The bytes that a device needs with a grid, before the walk knows them: eq. 8 of cuMF, m f / q + n f / p +
 * |R(ij)| + (m / q) f² + (m / q) f, with what is resident in place of what comes part by part, and twice what
 * is staged. The walk over the plan's steps decides; this tells the planner which cut to try.
 *
 */
export function deviceBytes({
  profile: { ratings: nz },
  params: { rank, biases },
  compute,
  device,
  rows,
  grid,
}: Sized): number {
  const d = compute.length;
  const factors = (side: Side) => factorBytes(rows[side], rank, device.strideStep);
  const resident = (side: Side): number => {
    const { q, fixed, factors: home, ratings } = grid[side];
    // A device without memory of its own reads ratings where they are.
    const blocks =
      ratings === 'device' && device.ownMemory
        ? (8 * nz + 4 * rows[side] * verticalParts(grid, side)) / d
        : 0;
    if (home === 'host') return blocks;
    const own = factors(side) / d + factors(side) / q;
    return blocks + own + (fixed === 'whole' && (q > 1 || d > 1) ? factors(side) : 0);
  };
  const transient = (side: Side): number => {
    const { q, factors: home, ratings } = grid[side];
    const p = verticalParts(grid, side);
    const own = factors(side) / q;
    const sums = sumsOf(grid, side);
    const copies = d > 1 ? 2 : 1;
    const vectors = factorBytes(rows[side] / q, gradientColumns(rank, biases), device.strideStep) + 3 * own;
    const equations =
      sums === undefined
        ? 0
        : copies *
          (sums === 'vectors'
            ? vectors
            : factorBytes(rows[side] / q, equationColumns(rank, biases), device.strideStep));
    return (
      equations +
      (home === 'host' ? 4 * own : 0) +
      (ratings === 'device' || !device.ownMemory ? 0 : (2 * blockBytes(rows[side], nz / p)) / q) +
      (isInBlocks(grid, side) && grid[otherSide[side]].factors === 'host'
        ? (2 * factors(otherSide[side])) / p
        : 0)
    );
  };
  return sides.reduce((sum, side) => sum + resident(side), 0) + Math.max(...sides.map(transient));
}

/**
 * The bytes of host memory that a grid needs: ratings that do not lie in files, factors at the host in two
 * versions of a part, and a copy of the model.
 */
export function hostBytes({ profile: { ratings: nz }, params: { rank }, device, rows, grid }: Sized): number {
  const blocks = (side: Side) =>
    grid[side].ratings === 'spill'
      ? 0
      : blockBytes(rows[side], nz) +
        (isInBlocks(grid, side) ? 4 * rows[side] * verticalParts(grid, side) : 0);
  const factors = (side: Side) => 4 * rows[side] * rank;
  const copies = device.ownMemory ? 2 : 1;
  return sides.reduce(
    (sum, side) =>
      sum +
      blocks(side) +
      copies * factors(side) +
      (grid[side].factors === 'host' ? factors(side) * (1 + 1 / grid[side].q) : 0),
    0,
  );
}

/**
 * The largest buffer of a grid beside what a device binds, or the largest block beside the ratings that one
 * has, in units of that bound: beyond 1 it does not fit.
 */
export function bindingShare({
  profile: { ratings: nz },
  params: { rank, biases },
  device,
  rows,
  grid,
}: Sized): number {
  const { bindingBytes = Infinity } = device;
  return Math.max(
    blockShare({ profile: { ratings: nz }, grid }),
    ...sides.map((side) => {
      const { q, fixed } = grid[side];
      const cut = q * verticalParts(grid, side);
      const whole =
        fixed === 'whole'
          ? factorBytes(rows[side], rank, device.strideStep)
          : factorBytes(rows[side] / q, rank, device.strideStep);
      const sums = sumsOf(grid, side);
      const equations =
        sums === undefined
          ? 0
          : factorBytes(
              rows[side] / q,
              sums === 'vectors' ? gradientColumns(rank, biases) : equationColumns(rank, biases),
              device.strideStep,
            );
      // Rows of one part have more ratings than those of another; the cut is by ratings and rows.
      return (1.05 * Math.max(whole, equations, (4 * nz) / cut)) / bindingBytes;
    }),
  );
}

/**
 * The ratings of the largest block of a grid beside those that a block may have. Users are sorted in rows
 * that are cut into blocks later.
 */
export function blockShare({
  profile: { ratings: nz },
  grid,
}: Pick<AlsProblem, 'grid'> & { readonly profile: Pick<AlsProblem['profile'], 'ratings'> }): number {
  const blocks = Math.min(grid.users.q, grid.items.q * verticalParts(grid, 'items'));
  return nz <= blockLimit.ratings ? 0 : (1.05 * nz) / blocks / blockLimit.ratings;
}
