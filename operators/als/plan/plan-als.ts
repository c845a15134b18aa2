import type { CapacityError } from '../../../engine/errors.ts';
import { formatBytes } from '../../../engine/format.ts';
import type { PhysicalPlan, RejectedPlan } from '../../../engine/plan/physical-plan.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { ratesOf } from '../../planner/device-rates.ts';
import type { RatingsProfile } from '../../planner/sizes.ts';
import { rankingMetricOf } from '../../params/common.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import {
  sizedParams,
  type AlsParams,
  type RequestedGrids,
  requestedGrids,
  requireGroupsOf,
  requireRowsForParts,
} from '../als-params.ts';
import { candidateGrids, describeGrid } from './candidates.ts';
import { costOf, type IterationCost } from './cost.ts';
import { blockShare } from './memory.ts';
import {
  type AlsGrid,
  type Side,
  type SideGrid,
  sides,
  suits,
  type AlsPlanOptions,
  type AlsProblem,
  limitedDevices,
} from './problem.ts';
import { type LeastMemory, leastMemory } from './least-memory.ts';
import { PlannedGrids } from './plan-of-grid.ts';
import { fitting, noneFits, requireVectorSums, requireVertical, tooLarge } from './refusals.ts';
import { fewerReason, type UsualWay, usualWays } from './usual-ways.ts';

/**
 * The usual grid is one part of each side on each device. Another grid must save at least this fraction of an
 * iteration and this number of seconds to be chosen instead, since times are only estimates.
 */
const WORTH = { share: 0.2, seconds: 0.005 };

/**
 * If the plan of a grid needs more memory than estimated, its parts are halved, at most this number of times.
 */
const FINER = 1;

/**
 * Makes the physical plan of ALS: a pure function of profile, parameters and devices. One device takes the
 * usual grid (one part of each side on each device) if it fits. Several devices take it unless another grid
 * is estimated to save enough time (WORTH). If the usual grid does not fit, the plan takes the fitting grid
 * with the least estimated time. Rejected grids are listed with their reasons. Throws CapacityError if none
 * fits, before anything is allocated.
 */
export function planAls(
  profile: RatingsProfile,
  given: AlsParams,
  devices: PlanDevices,
  choices?: AlsChoices,
  options: AlsPlanOptions = {},
): PhysicalPlan {
  const limited = limitedDevices(devices, options);
  const planned = new PlannedGrids(profile, sizedParams(given, profile), limited, choices, options);
  if (options.grid !== undefined) return planned.planOf(options.grid);
  return new PlanSearch(planned, options).best();
}

interface PricedPlan {
  readonly plan: PhysicalPlan;
  readonly cost: IterationCost;
  /** Number of devices that the plan uses. */
  readonly used: number;
}

/** The reason against a plan that saves less time than WORTH_DEVICE asks for its further devices. */
const FEW_SAVED = 'saves too little for more devices';

/** A candidate grid, and its estimated time. */
interface Candidate {
  readonly grid: AlsGrid;
  readonly fits: boolean;
  readonly cost: IterationCost;
}

/** Chooses among the grids of a problem. */
class PlanSearch {
  readonly #planned: PlannedGrids;
  readonly #options: AlsPlanOptions;
  readonly #problem: AlsProblem;
  readonly #requested: RequestedGrids;
  readonly #rejected: RejectedPlan[] = [];
  /** The usual grid, with its plan if it fits. `error`: the reason why it does not fit on all devices. */
  #usual: { readonly way: UsualWay; readonly plan?: PhysicalPlan; readonly error?: CapacityError };
  #chosen: PricedPlan | undefined;
  /** Seconds of the fastest plan that fits and uses all devices. */
  #onAll = Infinity;

  constructor(planned: PlannedGrids, options: AlsPlanOptions) {
    this.#planned = planned;
    this.#options = options;
    this.#problem = planned.problemOn();
    this.#requested = requestedGrids(planned.params);
    const problem = this.#problem;
    this.#usual = { way: { name: describeGrid(problem.grid), problem, cost: costOf(problem) } };
  }

  best(): PhysicalPlan {
    this.#requirePossible();
    this.#tryUsualWays();
    const { plan, way } = this.#usual;
    if (plan && this.#problem.compute.length === 1 && !this.#options.compares) return plan;
    this.#chosen = plan && { plan, cost: way.cost, used: way.problem.compute.length };
    const candidates = this.#candidates();
    for (const candidate of candidates) this.#consider(candidate);
    if (this.#chosen === undefined) throw this.#noneFits(candidates);
    const { plan: best, cost, used } = this.#chosen;
    const estimate = { ...cost, rates: ratesText(this.#problem) };
    const given = this.#problem.compute.length;
    const fewer =
      used < given && this.#onAll < Infinity ? [fewerReason(used, given, cost.seconds, this.#onAll)] : [];
    return { ...best, reasons: [...best.reasons, ...fewer], estimate, rejected: this.#rejected };
  }

  /** Throws UsageError for requests that no plan can satisfy. */
  #requirePossible(): void {
    requireRowsForParts(this.#requested, this.#problem.rows);
    requireGroupsOf(this.#requested, this.#problem.compute.length);
    requireVectorSums(this.#requested, this.#problem);
  }

  /** Takes the first usual grid that fits. */
  #tryUsualWays(): void {
    const ways = usualWays(this.#problem, this.#requested, (compute) => this.#planned.problemOn(compute));
    for (const way of ways.filter(({ problem }) => blockShare(problem) <= 1)) {
      const { seconds } = way.cost;
      const onAll = way.problem.compute.length === this.#problem.compute.length;
      if (this.#usual.plan !== undefined) {
        if (onAll) this.#onAll = Math.min(this.#onAll, seconds);
        this.#reject(way.name, way.cost, seconds < this.#usual.way.cost.seconds ? FEW_SAVED : 'slower');
        continue;
      }
      const { plan, error } = fitting(() => this.#planned.planOf(way.grid, way.problem.compute));
      if (plan !== undefined) this.#usual = { way, plan };
      else this.#reject(way.name, way.cost, (error as CapacityError).summary);
      if (plan === undefined && onAll) this.#usual = { error, ...this.#usual };
    }
  }

  /** Possible grids on all devices, fastest first. */
  #candidates(): Candidate[] {
    return this.#grids(this.#requested)
      .map((candidate) => ({ ...candidate, cost: costOf({ ...this.#problem, grid: candidate.grid }) }))
      .sort((left, right) => left.cost.seconds - right.cost.seconds);
  }

  #grids(requested: RequestedGrids, problem = this.#problem): ReturnType<typeof candidateGrids> {
    return candidateGrids(problem, { ...this.#limits(), requested });
  }

  #limits() {
    const { testRatings, device } = this.#problem;
    const { params } = this.#planned;
    // Ranking needs all items at the same time.
    const ranksItems =
      testRatings !== undefined && params.implicitPrefs && rankingMetricOf(params) !== undefined;
    const { files = false } = this.#options;
    const ratings: readonly SideGrid['ratings'][] = this.#options.ratings ?? [
      'device',
      ...(device.ownMemory ? (['host'] as const) : []),
      ...(files ? (['spill'] as const) : []),
    ];
    return {
      whole: ranksItems ? (['items'] as const) : [],
      hostBytes: this.#options.hostBytes ?? Infinity,
      ratings,
      mostBlocks: this.#options.mostBlocks,
      files: files || ratings.includes('spill'),
    };
  }

  /** Chooses a grid, or records the reason against it. */
  #consider({ grid, fits, cost }: Candidate): void {
    const name = describeGrid(grid);
    if (fits) this.#onAll = Math.min(this.#onAll, cost.seconds);
    if (!fits) this.#reject(name, cost, tooLarge(this.#problem, grid, this.#options.hostBytes));
    else if (this.#chosen === undefined || (this.#chosen.plan === this.#usual.plan && this.#isWorth(cost)))
      this.#choose(grid, name, cost);
    else if (name !== this.#usual.way.name && this.#rejected.every((one) => one.name !== name))
      this.#reject(
        name,
        cost,
        cost.seconds >= this.#chosen.cost.seconds ? 'slower' : 'not worth leaving the usual grid',
      );
  }

  /** True if a grid saves enough of the usual grid's time. */
  #isWorth({ seconds }: IterationCost): boolean {
    const usual = this.#usual.way.cost.seconds;
    return seconds < (1 - WORTH.share) * usual && seconds < usual - WORTH.seconds;
  }

  #choose(grid: AlsGrid, name: string, cost: IterationCost): void {
    const problem = this.#problem;
    const tried = this.#tried(this.#planned, grid, this.#requested);
    if (tried.plan === undefined) return this.#reject(name, cost, tried.reason);
    if (this.#chosen !== undefined) this.#reject(this.#usual.way.name, this.#chosen.cost, 'slower');
    const used = problem.compute.length;
    this.#chosen = { plan: tried.plan, cost: costOf({ ...problem, grid: tried.grid }), used };
  }

  #tried(planned: PlannedGrids, grid: AlsGrid, requested: RequestedGrids): ReturnType<typeof finer> {
    const planOf = (cut: AlsGrid) => planned.planOf(cut);
    return finer(grid, this.#problem.rows, planOf, (cut) => suits(cut, requested));
  }

  #reject(name: string, { seconds }: IterationCost, reason: string): void {
    this.#rejected.push({ name, seconds, reason });
  }

  #noneFits(candidates: readonly Candidate[]): CapacityError {
    if (candidates.length === 0) requireVertical(this.#requested);
    // A search with few blocks is one of several, and its error is not shown: its memory is only estimated.
    const isShown = this.#options.mostBlocks === undefined;
    return noneFits(this.#problem, isShown ? this.#grids({}) : candidates, this.#requested, {
      usual: this.#usual.error,
      reason: this.#rejected[0]?.reason,
      walked: (grid) => (isShown ? fitting(() => this.#planned.planOf(grid)).plan?.memory : undefined),
      ...(isShown && { least: (estimate: number) => this.#least(estimate) }),
    });
  }

  /**
   * The least memory of a device with which the planner finds a grid that fits, if no partitions are
   * requested.
   */
  #least(estimate: number): LeastMemory | undefined {
    const capacities = this.#problem.compute.map(({ capacityBytes }) => capacityBytes ?? Infinity);
    return leastMemory(Math.min(...capacities), estimate, (bytes) => {
      const planned = this.#planned.onDevicesOf(bytes);
      const grids = this.#grids({}, planned.problemOn()).filter(({ fits }) => fits);
      const blocks = ({ grid }: { readonly grid: AlsGrid }) => grid.users.q * grid.items.q;
      for (const { grid } of grids.sort((left, right) => blocks(left) - blocks(right))) {
        const tried = this.#tried(planned, grid, {});
        if (tried.plan !== undefined) return tried.grid;
      }
      return undefined;
    });
  }
}

/**
 * Makes the plan of a grid. If it needs too much memory, tries again with twice the number of parts, up to
 * FINER times; every part keeps at least one row. Returns the grid that was used, and if nothing fits, the
 * reason. `may`: true for a grid that the caller's parameters allow.
 */
function finer(
  grid: AlsGrid,
  rows: AlsProblem['rows'],
  planOf: (grid: AlsGrid) => PhysicalPlan,
  may: (grid: AlsGrid) => boolean,
): { readonly grid: AlsGrid; readonly plan?: PhysicalPlan; readonly reason: string } {
  let cut = grid;
  let reason = '';
  for (let times = 0; times <= FINER; times++) {
    const { plan, error } = fitting(() => planOf(cut));
    if (plan !== undefined) return { grid: cut, plan, reason };
    reason = error?.summary ?? reason;
    const cutOf = (side: Side) => ({
      ...cut[side],
      q: cut[side].common === 1 ? 1 : Math.min(rows[side], 2 * cut[side].q),
    });
    const next: AlsGrid = { users: cutOf('users'), items: cutOf('items') };
    if (sides.every((side) => next[side].q === cut[side].q) || !may(next)) break;
    cut = next;
  }
  return { grid: cut, reason };
}

function ratesText({ device, solver }: AlsProblem): string {
  const rates = ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0);
  return `rates of ${rates.name}: ${rates.source}; ${formatBytes(rates.link)}/s between host and device, ${formatBytes(rates.exchange)}/s exchanged with other devices, ${formatBytes(rates.memory)}/s in its memory`;
}
