import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataUse, TaskPlan, Work } from '../../../engine/plan/stages.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { rankingMetricOf } from '../../params/common.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import { taskCount } from '../../ratings/row-ranges.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import { chooseSolver, takesFewer } from '../solver-choice.ts';
import {
  type AlsGrid,
  exchangesVectors,
  gridOf,
  isInBlocks,
  otherSide,
  placesOfParts,
  type Side,
  type SideGrid,
  sumsOf,
  usualGrid,
  verticalParts,
} from './grid.ts';

/** Inputs of all parts of a plan. */
export interface AlsProblem {
  readonly profile: RatingsProfile;
  /** Number of pairs to measure: implicit data have no test error, a validation set is used for rankings. */
  readonly testRatings: number | undefined;
  readonly params: SizedAlsParams;
  readonly choices: AlsChoices | undefined;
  /**
   * True if new ratings move a row only a limited distance from its previous factors: see `update-implicit`.
   */
  readonly anchored: boolean;
  readonly grid: AlsGrid;
  /** Devices that have parts. */
  readonly compute: readonly DeviceInfo[];
  readonly host: DeviceInfo;
  /** The first of `compute`; the plan uses its properties. */
  readonly device: DeviceInfo;
  readonly places: readonly Place[];
  readonly rows: Readonly<Record<Side, number>>;
  readonly solver: ReturnType<typeof chooseSolver>;
}

export interface AlsPlanOptions {
  readonly anchored?: boolean;
  /** Grid of the plan. Default: the usual grid, or the fitting grid with the least estimated time. */
  readonly grid?: AlsGrid;
  /**
   * Homes of ratings that the planner may choose. Default: devices, and the host, from which they are staged.
   */
  readonly ratings?: readonly SideGrid['ratings'][];
  /** Bytes of host memory for ratings and factors. Default: not limited here. */
  readonly hostBytes?: number;
  /** True to estimate the time of an iteration and list rejected grids, even on one device. */
  readonly compares?: boolean;
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

/** The problem of a plan. */
export function problemOf(plan: PhysicalPlan): AlsProblem {
  const { sizes, devices, choices, params } = plan;
  const { users, items, ratings, testRatings } = sizes;
  const places = stageNamed(plan, 'place-ratings').at;
  return alsProblem(
    { users, items, ratings, ...(testRatings === undefined ? {} : { testRatings }) },
    params as unknown as SizedAlsParams,
    { compute: devices.filter(({ place }) => places.includes(place)), host: devices[devices.length - 1] },
    choices.users === undefined ? undefined : (choices as unknown as AlsChoices),
    { grid: gridOf(plan) },
  );
}

/** Home of each part of a side. */
export function partPlaces(problem: AlsProblem, side: Side): Place[] {
  return allPlaces(problem, side).map(([home]) => home);
}

/** Places of each part of a side, its home first; several for a part that every device solves for itself. */
export function allPlaces({ grid, places }: AlsProblem, side: Side): Place[][] {
  return placesOfParts(grid[side], places);
}

/**
 * Place of each block of the ratings by a side's rows, row-major: the place of its part of the fixed side.
 */
export function blockPlaces(problem: AlsProblem, side: Side): Place[] {
  const columns = partPlaces(problem, otherSide[side]);
  return Array.from({ length: problem.grid[side].q }, () => columns).flat();
}

/** Place of each part of the ratings by a side's rows. */
export function ratingPlaces(problem: AlsProblem, side: Side): Place[] {
  return isInBlocks(problem.grid, side) ? blockPlaces(problem, side) : partPlaces(problem, side);
}

/** Work of a stage over the ratings by a side's rows: over its parts, or over its blocks in row order. */
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
 * True if kernels read all rows of a side in float16, or in 8 bits rounded from float16. Errors read the
 * items in float32.
 */
export function isHalfOnly({ choices, places }: Pick<AlsProblem, 'choices' | 'places'>, side: Side): boolean {
  return (
    side === 'users' &&
    places.length > 1 &&
    choices !== undefined &&
    choices[otherSide[side]].precision !== 'f32'
  );
}

/** Use of the other side with the ratings by a side's rows: whole, or the part of the block. */
export function fixedUse({ grid }: AlsProblem, side: Side, whole: string, parts: string): string | DataUse {
  return isInBlocks(grid, side) ? { set: parts, part: 'column' } : whole;
}

/** Number of tasks for one part in a pass; `ratings` is the number of ratings of all parts of the side. */
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

/** Share of a device's memory that the sums of all devices' parts may take, for steps that they take together. */
const TOGETHER = 0.25;

/**
 * True if a part of each device takes the steps of conjugate gradients at the same time, so that devices
 * compute while others wait for an exchange. Parts whose ratings are staged go through all steps one after
 * the other, so that each block is copied once.
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
 * Names of a side's data sets. `whole`: the data set with all rows of the side on every device, if the side
 * is fixed as a whole. It is the side itself if that is one part on the only device.
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
    // `partials` and `all...`: at each place of the fixed side, if there are several devices.
    equations: `${side}-equations`,
    partials: `${side}-partials`,
    gradients: `${side}-gradients`,
    direction: `${side}-direction`,
    products: `${side}-products`,
    allGradients: `${side}-gradients-of-parts`,
    allDirections: `${side}-directions`,
    allProducts: `${side}-products-of-parts`,
  };
}
