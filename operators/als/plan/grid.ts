import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { RequestedGrids, SumsOfParts } from '../partitions.ts';

export type Side = 'users' | 'items';

export const sides = ['users', 'items'] as const;

/** For the side that is solved, the side that is fixed. */
export const otherSide = { users: 'items', items: 'users' } as const;

/** The parts into which one side of the ratings matrix R is cut, and the memory in which they are stored. */
export type SideGrid = {
  /**
   * Number of parts of this side. In cuMF's terms they are horizontal parts (q) while this side is solved.
   * While the other side is solved from the parts of this one, they are vertical parts (p).
   */
  readonly q: number;
  /**
   * The form in which the other half-iteration reads this side: `whole`: one matrix with all rows on each
   * device (p = 1); `parts`: part by part (p is this side's q).
   */
  readonly fixed: 'whole' | 'parts';
  /**
   * The memory in which the factors stay between uses. From `host` memory and from files (`spill`), a part is
   * copied to a device while it is used there.
   */
  readonly factors: 'device' | 'host' | 'spill';
  /**
   * The memory in which the ratings sorted by this side stay. From `host` memory and from files (`spill`),
   * parts are copied to a device for each use.
   */
  readonly ratings: 'device' | 'host' | 'spill';
  /**
   * If the side is solved from vertical parts of the other side: the sums that devices exchange. `equations`
   * (default): normal equations; else a vector per row in each step of conjugate gradients, computed from the
   * ratings (`vectors`) or from each device's share of the equations (`partial-equations`).
   */
  readonly sums?: SumsOfParts;
  /**
   * With several devices: the fraction of the ratings in the last part, the common part. Every device solves
   * all rows of that part for itself, so they need no exchange. The other parts are divided among the
   * devices.
   */
  readonly common?: number;
  /**
   * For devices of different speeds: the fraction of the ratings outside the common part that each device
   * gets, in device order. Default: equal fractions.
   */
  readonly speeds?: readonly number[];
};

/**
 * The grid of both half-iterations (cuMF, section 4), as plain JSON. A plan stores it in `choices` unless it
 * is the usual grid.
 */
export type AlsGrid = Readonly<Record<Side, SideGrid>>;

/**
 * The usual grid: each side has one part per device, and every device gets a copy of the whole fixed side.
 */
export function usualGrid({ length: devices }: readonly DeviceInfo[]): AlsGrid {
  const side: SideGrid = { q: devices, fixed: 'whole', factors: 'device', ratings: 'device' };
  return { users: side, items: side };
}

/**
 * True if a side has more parts than devices, so that a part can be sent to the other devices while the next
 * parts are solved.
 */
export function isPipelined(grid: AlsGrid, side: Side, devices: number): boolean {
  const { q, fixed, factors } = grid[side];
  return devices > 1 && q > devices && fixed === 'whole' && factors === 'device';
}

/**
 * True if the Gram matrix of a side (needed for implicit data) is added up from the Gram matrices of its
 * parts. That is necessary if no device has all rows, or has them only in float16, as is possible for users.
 */
export function hasGramOfParts(grid: AlsGrid, side: Side, devices: number): boolean {
  return grid[side].fixed === 'parts' || (devices > 1 && side === 'users');
}

/**
 * True if the grid has the numbers of parts that the parameters request for each side (q and p), and each
 * side that is solved from vertical parts exchanges the requested sums (equations or vectors). If sums or
 * groups of devices are requested, there must be such a side.
 */
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

/** The kind of sums if a side is solved from vertical parts of the other side; otherwise undefined. */
export function sumsOf(grid: AlsGrid, side: Side): SumsOfParts | undefined {
  return isInBlocks(grid, side) ? (grid[side].sums ?? 'equations') : undefined;
}

/**
 * True if a side is solved from vertical parts by conjugate gradients, and devices exchange vectors in each
 * step.
 */
export function exchangesVectors(grid: AlsGrid, side: Side): boolean {
  const sums = sumsOf(grid, side);
  return sums !== undefined && sums !== 'equations';
}

/**
 * True if every device takes the steps of conjugate gradients for all rows of a side, so that a step needs
 * one exchange, and the rows are on all devices at the end.
 */
export function stepsEverywhere(grid: AlsGrid, side: Side): boolean {
  return grid[side].common === 1 && exchangesVectors(grid, side);
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
 * True if a side is solved from vertical parts of the other side. The ratings sorted by its rows are then cut
 * into a grid of blocks, one for each pair of parts.
 */
export function isInBlocks(grid: AlsGrid, solved: Side): boolean {
  return grid[otherSide[solved]].fixed === 'parts';
}

/**
 * True if the number of ratings in each row is stored separately, because the ratings are cut into blocks or
 * are not on the device all the time.
 */
export function hasLengths(grid: AlsGrid, side: Side): boolean {
  return isInBlocks(grid, side) || grid[side].ratings !== 'device';
}

/** Number of vertical parts of the fixed side in the half-iteration that solves a side (cuMF's p). */
export function verticalParts(grid: AlsGrid, solved: Side): number {
  return isInBlocks(grid, solved) ? grid[otherSide[solved]].q : 1;
}

/**
 * For each part of a side, the devices that hold it, its owner first. A device owns consecutive parts. The
 * common part (see SideGrid) is on all devices.
 */
export function placesOfParts({ q, common }: SideGrid, places: readonly Place[]): Place[][] {
  const own = common === undefined ? q : q - 1;
  const homes = Array.from({ length: own }, (_, part) => [places[Math.floor((part * places.length) / own)]]);
  return common === undefined ? homes : [...homes, [...places]];
}

/** The fraction of the ratings in each part of a side; undefined if all fractions are equal. */
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
