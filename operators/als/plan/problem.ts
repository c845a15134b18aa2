import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataSet, DataUse, TaskPlan, Work } from '../../../engine/plan/stages.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { rankingMetricOf } from '../../params/common.ts';
import { forSides } from '../../params/param.ts';
import { profileOfSizes, type RatingsProfile } from '../../planner/sizes.ts';
import { taskCount } from '../../ratings/row-ranges.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import type { RowRegularization } from '../../tasks/task-types.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import type { SizedAlsParams, RequestedGrids, SumsOfParts } from '../als-params.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import { chooseSolver, takesFewer } from '../solver-choice.ts';

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
export function hasRequestedParts(grid: AlsGrid, requested: RequestedGrids): boolean {
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
function placesOfParts({ q, common }: SideGrid, places: readonly Place[]): Place[][] {
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

/** The input of all functions that make parts of an ALS plan. */
export interface AlsProblem {
  readonly profile: RatingsProfile;
  /**
   * Number of validation pairs to measure: for an error, or for a ranking metric if the data are implicit.
   * Undefined if the plan measures none.
   */
  readonly testRatings: number | undefined;
  readonly params: SizedAlsParams;
  readonly choices: AlsChoices | undefined;
  /**
   * For an update of a model by new ratings: true if they move a row only a limited distance from its
   * previous factors (see the input `anchors` of `update-implicit`).
   */
  readonly anchored: boolean;
  readonly grid: AlsGrid;
  /** Devices that hold parts of the factors and compute. */
  readonly compute: readonly DeviceInfo[];
  readonly host: DeviceInfo;
  /** The first of `compute`; the plan uses its properties. */
  readonly device: DeviceInfo;
  readonly places: readonly Place[];
  readonly rows: Readonly<Record<Side, number>>;
  readonly solver: ReturnType<typeof chooseSolver>;
}

/** Roles of data sets that exist before the first step of a run and never change. */
export type GivenRole =
  | 'ratings'
  | 'tests'
  | 'keys'
  | 'lengths'
  | 'totals'
  | 'shifts'
  | 'anchors'
  | 'attributes'
  | 'weights';

export interface AlsDataSet extends DataSet {
  readonly role:
    | GivenRole
    | 'factors'
    | 'bias'
    | 'whole'
    | 'equations'
    | 'gradients'
    | 'direction'
    | 'products'
    | 'solution'
    | 'gram'
    | 'places'
    | 'coefficients'
    | 'prior'
    | 'work';
  readonly side: Side;
}

export interface AlsPlanOptions {
  readonly anchored?: boolean;
  /** Grid of the plan. Default: the usual grid, or the fitting grid with the least estimated time. */
  readonly grid?: AlsGrid;
  /**
   * The memory in which the planner may keep the ratings (see SideGrid). Default: on the devices; also in
   * host memory if the devices have their own memory.
   */
  readonly ratings?: readonly SideGrid['ratings'][];
  /**
   * True if the planner may also keep ratings and parts of factors in files. Default: if `ratings` has files.
   */
  readonly files?: boolean;
  /** Bytes of host memory for ratings and factors. Default: not limited here. */
  readonly hostBytes?: number;
  /** Most blocks of ratings in a half-iteration. Default: 2^15. */
  readonly mostBlocks?: number;
  /** The most bytes that a plan may use of a device without its own memory. Default: its capacity. */
  readonly deviceBytes?: number;
  /** True to estimate the time of an iteration and list rejected grids, even on one device. */
  readonly compares?: boolean;
}

/** The devices, with `deviceBytes` as the capacity of those that share the host's memory and have more. */
export function limitedDevices(
  devices: PlanDevices,
  { deviceBytes = Infinity }: Pick<AlsPlanOptions, 'deviceBytes'>,
): PlanDevices {
  const compute = devices.compute.map((device) =>
    !device.ownMemory && (device.capacityBytes ?? Infinity) > deviceBytes
      ? { ...device, capacityBytes: deviceBytes }
      : device,
  );
  const host = compute.find(({ place }) => place === devices.host.place) ?? devices.host;
  return { ...devices, compute, host };
}

export function alsProblem(
  profile: RatingsProfile,
  params: SizedAlsParams,
  devices: PlanDevices,
  choices: AlsChoices | undefined,
  { anchored = false, grid }: AlsPlanOptions,
): AlsProblem {
  const rows = { users: profile.users, items: profile.items };
  // Every device must have rows of both sides.
  const compute = devices.compute.slice(0, Math.max(1, Math.min(rows.users, rows.items)));
  const testRatings =
    params.implicitPrefs && rankingMetricOf(params) === undefined ? undefined : profile.testRatings;
  const [device] = compute;
  return {
    profile,
    testRatings,
    params,
    choices,
    anchored,
    grid: grid ?? usualGrid(compute),
    compute,
    host: devices.host,
    device,
    places: compute.map(({ place }) => place),
    rows,
    solver: chooseSolver(params, device.kind, takesFewer(params, profile)),
  };
}

/** Reconstructs from a finished plan the problem for which it was made. */
export function problemOf(plan: PhysicalPlan): AlsProblem {
  const { sizes, devices, choices, params, datasets } = plan;
  const anchored = datasets.some(({ layout }) => layout === 'row-anchors');
  const places = stageNamed(plan, 'place-ratings').at;
  return alsProblem(
    profileOfSizes(sizes),
    params as unknown as SizedAlsParams,
    {
      compute: devices.filter(({ place }) => places.includes(place)),
      host: devices.find(({ kind }) => kind === 'cpu') ?? devices[devices.length - 1],
    },
    choices.users === undefined ? undefined : (choices as unknown as AlsChoices),
    { grid: gridOf(plan), anchored },
  );
}

/** For each part of a side, the device that owns it. */
export function partPlaces(problem: AlsProblem, side: Side): Place[] {
  return allPlaces(problem, side).map(([home]) => home);
}

/**
 * For each part of a side, the devices that hold it, its owner first. A part that every device solves for
 * itself has several.
 */
export function allPlaces({ grid, places }: AlsProblem, side: Side): Place[][] {
  return placesOfParts(grid[side], places);
}

/**
 * For each block of the ratings sorted by a side's rows, in row-major order: the device that processes it,
 * which is the owner of the block's part of the fixed side.
 */
export function blockPlaces(problem: AlsProblem, side: Side): Place[] {
  const columns = partPlaces(problem, otherSide[side]);
  return Array.from({ length: problem.grid[side].q }, () => columns).flat();
}

/** For each part or block of the ratings sorted by a side's rows, the device that processes it. */
export function ratingPlaces(problem: AlsProblem, side: Side): Place[] {
  return isInBlocks(problem.grid, side) ? blockPlaces(problem, side) : partPlaces(problem, side);
}

/**
 * The work of a stage that runs `tasks` on all ratings sorted by a side's rows: on each part, or on each
 * block, in row-major order, if the side is solved from vertical parts of the other side.
 */
export function overRatings(
  { grid }: AlsProblem,
  side: Side,
  ratings: string,
  tasks: readonly TaskPlan[],
): Work {
  if (!isInBlocks(grid, side)) return { kind: 'tasks', tasks };
  return {
    kind: 'blocks',
    tasks,
    order: 'rows',
    seed: 0,
    grid: { rows: grid[side].q, columns: verticalParts(grid, side), of: ratings },
  };
}

/**
 * True if the copies of this side that all devices hold may be in float16 only, because the kernels that read
 * them use float16 or 8-bit factors. That is possible for users only: the training error is computed from all
 * rows of the items in float32.
 */
export function isHalfOnly({ choices, places }: Pick<AlsProblem, 'choices' | 'places'>, side: Side): boolean {
  return (
    side === 'users' &&
    places.length > 1 &&
    choices !== undefined &&
    choices[otherSide[side]].precision !== 'f32'
  );
}

/**
 * True if devices send each other this side's rows in 8 bits, because the kernels that read the rows round
 * them to 8 bits anyway.
 */
export function isSentInEightBits(problem: Pick<AlsProblem, 'choices' | 'places'>, side: Side): boolean {
  return isHalfOnly(problem, side) && problem.choices?.[otherSide[side]].precision === 'int8';
}

/**
 * The other side as an input of tasks that read ratings sorted by `side`: the data set `whole`, or in blocks,
 * the block's part of the data set `parts`.
 */
export function fixedUse({ grid }: AlsProblem, side: Side, whole: string, parts: string): string | DataUse {
  return isInBlocks(grid, side) ? { set: parts, part: 'column' } : whole;
}

/**
 * Number of tasks into which a pass over the ratings cuts each part or block of a side. `ratings`: number of
 * ratings in all parts of the side together.
 */
export function tasksOfPart(
  { grid, device, rows, profile }: AlsProblem,
  side: Side,
  ratings = profile.ratings,
): number {
  const { q } = grid[side];
  return device.wholePasses
    ? 1
    : Math.min(Math.ceil(rows[side] / q), taskCount(Math.ceil(ratings / (q * verticalParts(grid, side)))));
}

/**
 * For `stepsTogether`: the largest fraction of a device's memory that the vectors and partial equations of
 * one part per device may take.
 */
const TOGETHER = 0.25;

/**
 * True if one part of each device goes through the steps of conjugate gradients at the same time, so that a
 * device can compute for one part while vectors of another part are exchanged. False if their vectors need
 * too much memory, and for ratings that are staged (copied to the device for each use): parts then go through
 * the steps one after the other, so that each block is copied once.
 */
export function stepsTogether(
  { grid, places, device, rows, params: { rank, biases } }: AlsProblem,
  side: Side,
): boolean {
  if (!exchangesVectors(grid, side) || places.length === 1 || grid[side].ratings !== 'device') return false;
  const equations = sumsOf(grid, side) === 'partial-equations' ? equationColumns(rank, biases) : 0;
  const numbers = equations + gradientColumns(rank, biases) + 3 * rank;
  const bytes = (4 * numbers * rows[side] * places.length) / grid[side].q;
  return bytes <= TOGETHER * (device.capacityBytes ?? Infinity);
}

/**
 * Names of a side's data sets. `whole` is a copy of the whole side on every device, which tasks read while
 * the other side is solved. If a single device holds the side as one part, no copy is needed, and `whole` is
 * the side itself.
 */
export function sideNames(
  side: Side,
  {
    grid,
    places,
    params,
  }: Pick<AlsProblem, 'grid' | 'params'> & { readonly places: { readonly length: number } },
) {
  const { q, factors } = grid[side];
  const isWhole = q === 1 && places.length === 1 && factors === 'device';
  return {
    factors: side,
    bias: params.biases ? `${side}-bias` : undefined,
    whole: isWhole ? side : `${side}-all`,
    wholeBias: params.biases ? (isWhole ? `${side}-bias` : `${side}-bias-all`) : undefined,
    keys: `${side}-keys`,
    ratings: side === 'users' ? 'ratings-by-user' : 'ratings-by-item',
    lengths: `${side}-lengths`,
    totals: `${side}-totals`,
    // `partials` and `all...` exist with several devices: partial sums, or copies of vectors, at each device
    // that holds parts of the fixed side.
    equations: `${side}-equations`,
    partials: `${side}-partials`,
    gradients: `${side}-gradients`,
    direction: `${side}-direction`,
    products: `${side}-products`,
    // Rows that are being solved, if their home is a file.
    solution: `${side}-solution`,
    allGradients: `${side}-gradients-of-parts`,
    allDirections: `${side}-directions`,
    allProducts: `${side}-products-of-parts`,
  };
}

/** The regularization of a side as parameters of the tasks that solve its rows. */
export function regularizationOf(
  { regParam, regExponent, biases, biasDamping }: SizedAlsParams,
  side: Side,
): RowRegularization {
  const damping = forSides(biasDamping)[side];
  return {
    lambda: regParam,
    ...(regExponent === 1 ? {} : { exponent: regExponent }),
    ...(biases && damping > 0 ? { damping } : {}),
  };
}
