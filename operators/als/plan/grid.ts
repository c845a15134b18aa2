import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { RequestedGrids, SumsOfParts } from '../partitions.ts';

export type Side = 'users' | 'items';

export const sides = ['users', 'items'] as const;

/** The fixed side while this one is solved. */
export const otherSide = { users: 'items', items: 'users' } as const;

/** Cut of one side of R, and where its parts are stored. */
export type SideGrid = {
  /**
   * Horizontal parts of the side when it is solved (q), which are its vertical parts (p) when it is fixed in
   * parts.
   */
  readonly q: number;
  /**
   * The form in which the other half-iteration reads this side: as one matrix at each place (p = 1), or part
   * by part (p is then q of this side).
   */
  readonly fixed: 'whole' | 'parts';
  /** Home of its factors. With `host`, a part is on a device only while it is used there. */
  readonly factors: 'device' | 'host';
  /**
   * Home of the ratings that are sorted by this side: on the device, or staged from host memory or from the
   * spill folder.
   */
  readonly ratings: 'device' | 'host' | 'spill';
  /**
   * The sums that devices exchange if the side is solved from vertical parts: normal equations (the
   * default), or vectors in each step of conjugate gradients, from the ratings or from partial equations.
   */
  readonly sums?: SumsOfParts;
  /**
   * With several devices: the share of the ratings that is in the last part. Every device solves that part's
   * rows for itself, so these rows need no exchange. The other parts are divided among the devices.
   */
  readonly common?: number;
  /**
   * For devices of different speeds: each device's share of the other parts, in order. Default: equal shares.
   */
  readonly speeds?: readonly number[];
};

/**
 * Grid of both half-iterations (cuMF, section 4): plain JSON, stored in the choices of a plan with an unusual
 * grid.
 */
export type AlsGrid = Readonly<Record<Side, SideGrid>>;

/** One part of each side on each device; the fixed side is whole on all devices. */
export function usualGrid({ length: devices }: readonly DeviceInfo[]): AlsGrid {
  const side: SideGrid = { q: devices, fixed: 'whole', factors: 'device', ratings: 'device' };
  return { users: side, items: side };
}

/** True if the parts of a side form a pipeline: a part is gathered while the next ones are solved. */
export function isPipelined(grid: AlsGrid, side: Side, devices: number): boolean {
  const { q, fixed, factors } = grid[side];
  return devices > 1 && q > devices && fixed === 'whole' && factors === 'device';
}

/**
 * True if the Gram matrix of a side is the sum of its parts' matrices. That is necessary if no device has
 * all rows, or if devices have all rows only in float16, as for users.
 */
export function hasGramOfParts(grid: AlsGrid, side: Side, devices: number): boolean {
  return grid[side].fixed === 'parts' || (devices > 1 && side === 'users');
}

/** True if the grid has the parts that parameters request. */
export function suits(grid: AlsGrid, requested: RequestedGrids): boolean {
  const inBlocks = sides.filter((side) => isInBlocks(grid, side));
  if (requested.groups !== undefined && inBlocks.length === 0) return false;
  if (
    requested.sums !== undefined &&
    (inBlocks.length === 0 || inBlocks.some((side) => sumsOf(grid, side) !== requested.sums))
  )
    return false;
  return sides.every((side) => {
    const one = requested[side];
    return one === undefined || (one.q === grid[side].q && one.p === verticalParts(grid, side));
  });
}

/** Sums that are exchanged when a side is solved from vertical parts; undefined if it is not. */
export function sumsOf(grid: AlsGrid, side: Side): SumsOfParts | undefined {
  return isInBlocks(grid, side) ? (grid[side].sums ?? 'equations') : undefined;
}

/** True if a side is solved from vertical parts by conjugate gradients whose devices exchange vectors. */
export function exchangesVectors(grid: AlsGrid, side: Side): boolean {
  const sums = sumsOf(grid, side);
  return sums !== undefined && sums !== 'equations';
}

/** The grid of a plan. */
export function gridOf(plan: PhysicalPlan): AlsGrid {
  const grid = (side: Side): SideGrid => ({
    q: stageNamed(plan, `update-${side}`).at.length,
    fixed: 'whole',
    factors: 'device',
    ratings: 'device',
  });
  return (plan.choices.grid as AlsGrid | undefined) ?? { users: grid('users'), items: grid('items') };
}

/**
 * True if a side is solved from vertical parts of the other one, so that the ratings by its rows are a grid
 * of blocks.
 */
export function isInBlocks(grid: AlsGrid, solved: Side): boolean {
  return grid[otherSide[solved]].fixed === 'parts';
}

/**
 * True if the lengths of a side's rows are stored separately from its ratings, which are in blocks or staged.
 */
export function hasLengths(grid: AlsGrid, side: Side): boolean {
  return isInBlocks(grid, side) || grid[side].ratings !== 'device';
}

/** p of the half-iteration that solves a side: number of vertical parts of the fixed side. */
export function verticalParts(grid: AlsGrid, solved: Side): number {
  return isInBlocks(grid, solved) ? grid[otherSide[solved]].q : 1;
}

/**
 * The places of each part; the first is its home. Adjacent parts have the same home; a common part is at all
 * places.
 */
export function placesOfParts({ q, common }: SideGrid, places: readonly Place[]): Place[][] {
  const own = common === undefined ? q : q - 1;
  const homes = Array.from({ length: own }, (_, part) => [places[Math.floor((part * places.length) / own)]]);
  return common === undefined ? homes : [...homes, [...places]];
}

/** Share of the ratings in each part of a side; undefined if all are equal. */
export function sharesOfParts({ q, common, speeds }: SideGrid): number[] | undefined {
  if (common === undefined && speeds === undefined) return undefined;
  const own = common === undefined ? q : q - 1;
  const devices = speeds?.length ?? 1;
  return Array.from({ length: q }, (_, part) =>
    part === own
      ? (common ?? 0)
      : ((1 - (common ?? 0)) * (speeds?.[Math.floor((part * devices) / own)] ?? 1) * devices) / own,
  );
}
