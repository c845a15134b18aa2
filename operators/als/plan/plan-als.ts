import { CapacityError, UsageError } from '../../../engine/errors.ts';
import { formatBytes, formatCount } from '../../../engine/format.ts';
import type { PhysicalPlan, RejectedPlan } from '../../../engine/plan/physical-plan.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { rankingMetricOf } from '../../params/common.ts';
import { ratesOf } from '../../planner/device-rates.ts';
import { type RatingsProfile, blockLimit } from '../../planner/sizes.ts';
import {
  sizedParams,
  type AlsParams,
  type RequestedGrids,
  requestedGrids,
  requireGroupsOf,
  requireRowsForParts,
} from '../als-params.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import { ALL_ROWS } from '../solver-choice.ts';
import { candidateGrids, describeGrid, HEADROOM } from './candidates.ts';
import {
  costOf,
  type IterationCost,
  gramSeconds,
  pipelinedOf,
  pipelineSeconds,
  secondsAlone,
} from './cost.ts';
import { blockShare, leastBytes } from './memory.ts';
import { type PlannedGrids, plannedGrids } from './plan-of-grid.ts';
import {
  type AlsGrid,
  type Side,
  type SideGrid,
  sides,
  hasRequestedParts,
  type AlsPlanOptions,
  type AlsProblem,
  limitedDevices,
} from './problem.ts';

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
  const planned = plannedGrids(profile, sizedParams(given, profile), limited, choices, options);
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
      const { plan, error } = planOrError(() => this.#planned.planOf(way.grid, way.problem.compute));
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
    const tried = finer(this.#planned, grid, problem.rows, this.#requested);
    if (tried.plan === undefined) return this.#reject(name, cost, tried.reason);
    if (this.#chosen !== undefined) this.#reject(this.#usual.way.name, this.#chosen.cost, 'slower');
    const used = problem.compute.length;
    this.#chosen = { plan: tried.plan, cost: costOf({ ...problem, grid: tried.grid }), used };
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
      walked: (grid) => (isShown ? planOrError(() => this.#planned.planOf(grid)).plan?.memory : undefined),
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
      const usual = planned.problemOn();
      if (blockShare(usual) <= 1 && planOrError(() => planned.planOf()).plan !== undefined) return usual.grid;
      const grids = this.#grids({}, planned.problemOn()).filter(({ fits }) => fits);
      const blocks = ({ grid }: { readonly grid: AlsGrid }) => grid.users.q * grid.items.q;
      for (const { grid } of grids.sort((left, right) => blocks(left) - blocks(right))) {
        const tried = finer(planned, grid, this.#problem.rows, {});
        if (tried.plan !== undefined) return tried.grid;
      }
      return undefined;
    });
  }
}

/**
 * Makes the plan of a grid. If it needs too much memory, tries again with twice the number of parts, up to
 * FINER times; every part keeps at least one row. Returns the grid that was used, and if nothing fits, the
 * reason. `requested`: what the caller's parameters ask of a grid.
 */
function finer(
  planned: PlannedGrids,
  grid: AlsGrid,
  rows: AlsProblem['rows'],
  requested: RequestedGrids,
): { readonly grid: AlsGrid; readonly plan?: PhysicalPlan; readonly reason: string } {
  let cut = grid;
  let reason = '';
  for (let times = 0; times <= FINER; times++) {
    const { plan, error } = planOrError(() => planned.planOf(cut));
    if (plan !== undefined) return { grid: cut, plan, reason };
    reason = error?.summary ?? reason;
    const cutOf = (side: Side) => ({
      ...cut[side],
      q: cut[side].common === 1 ? 1 : Math.min(rows[side], 2 * cut[side].q),
    });
    const next: AlsGrid = { users: cutOf('users'), items: cutOf('items') };
    if (sides.every((side) => next[side].q === cut[side].q) || !hasRequestedParts(next, requested)) break;
    cut = next;
  }
  return { grid: cut, reason };
}

function ratesText({ device, solver }: AlsProblem): string {
  const rates = ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0);
  return `rates of ${rates.name}: ${rates.source}; ${formatBytes(rates.link)}/s between host and device, ${formatBytes(rates.exchange)}/s exchanged with other devices, ${formatBytes(rates.memory)}/s in its memory`;
}

/** The amount that is found is at most this factor above an amount that is too little. */
const PRECISION = 1.03;

/** Factor by which the search raises an amount that is too little, and the most times that it does. */
const RAISE = { factor: 1.25, times: 12 };

/** A grid, and the bytes of a device with which its plan fits. */
export interface LeastMemory {
  readonly bytes: number;
  readonly grid: AlsGrid;
}

/**
 * Finds the least memory of a device with which some plan fits, to a few percent, by trying amounts.
 * Undefined if more memory does not help.
 *
 * `tooFew`: bytes with which no plan fits. `estimate`: bytes with which a plan may fit. `fitting`: returns a
 * grid whose plan fits devices with that number of bytes.
 */
function leastMemory(
  tooFew: number,
  estimate: number,
  fitting: (bytes: number) => AlsGrid | undefined,
): LeastMemory | undefined {
  let low = tooFew;
  let bytes = Math.ceil(Math.max(estimate, tooFew * PRECISION));
  let grid = fitting(bytes);
  for (let times = 0; grid === undefined; times++) {
    if (times === RAISE.times) return undefined;
    low = bytes;
    bytes = Math.ceil(bytes * RAISE.factor);
    grid = fitting(bytes);
  }
  while (bytes > PRECISION * low) {
    // Amounts below the estimate are hardly ever enough, so the first of them is close to it.
    const middle = Math.ceil(Math.max(Math.sqrt(low * bytes), bytes / RAISE.factor));
    const found = fitting(middle);
    if (found === undefined) low = middle;
    else [bytes, grid] = [middle, found];
  }
  return { bytes, grid };
}

/**
 * Throws UsageError if devices are to exchange CG vectors but the solver or the priors of attributes need whole
 * normal equations.
 */
function requireVectorSums({ sums }: RequestedGrids, { solver, profile }: AlsProblem): void {
  if (sums !== undefined && sums !== 'equations' && profile.attributes !== undefined)
    throw new UsageError(`partitionSums ${sums} cannot be used with attributes of users or items`, {
      phase: 'plan',
      advice: 'Leave it at auto, or give equations',
    });
  if (sums !== undefined && sums !== 'equations' && solver.cgBelow < ALL_ROWS)
    throw new UsageError(
      `partitionSums ${sums} needs conjugate gradients for all rows, and the solver is ${solver.kernel}`,
      { phase: 'plan', advice: 'Give solver cg, or leave partitionSums at auto' },
    );
}

/**
 * Throws UsageError if `partitionSums` or `partitionGroups` is given but has no effect, since no grid for
 * these devices cuts the fixed side into (vertical) parts.
 */
function requireVertical({ users, items, sums, groups }: RequestedGrids): void {
  if ((sums === undefined && groups === undefined) || users !== undefined || items !== undefined) return;
  const requested = sums === undefined ? `partitionGroups ${groups?.join(',')}` : `partitionSums ${sums}`;
  throw new UsageError(
    `${requested} acts only if a side is solved from vertical parts, and no grid for these devices has them`,
    { phase: 'plan', advice: 'Ask for vertical parts by partitionUsers or partitionItems, or leave it out' },
  );
}

/** Calls a function that makes a plan. Returns the plan, or the CapacityError that the function threw. */
export function planOrError(plan: () => PhysicalPlan): {
  readonly plan?: PhysicalPlan;
  readonly error?: CapacityError;
} {
  try {
    return { plan: plan() };
  } catch (error) {
    if (!(error instanceof CapacityError)) throw error;
    return { error };
  }
}

/**
 * Explains, for the list of rejected plans, which limit a grid exceeds: memory, rating count or buffer size.
 */
function tooLarge(problem: AlsProblem, grid: AlsGrid, host = Infinity): string {
  const { device: need, host: onHost } = leastBytes({ ...problem, grid });
  if (onHost > host)
    return `needs about ${formatBytes(onHost)} of host memory, which has ${formatBytes(host)}`;
  const [least] = [...problem.compute].sort(
    (left, right) => (left.capacityBytes ?? Infinity) - (right.capacityBytes ?? Infinity),
  );
  if (least.capacityBytes !== null && need > HEADROOM * least.capacityBytes)
    return (
      `needs about ${formatBytes(need)} at ${least.place}, which has ` +
      `${formatBytes(least.capacityBytes)}${need > least.capacityBytes ? '' : ': too little where parts are unequal'}`
    );
  if (blockShare({ ...problem, grid }) > 1)
    return `has parts of more than ${formatCount(blockLimit.ratings)} ratings`;
  return (
    `has buffers beyond the ${formatBytes(problem.device.bindingBytes ?? 0)} that ` +
    `${problem.device.place} binds`
  );
}

/**
 * The error if no grid fits. Its message has the least memory that a device must have, or, if the caller
 * requested numbers of parts, the grid that would fit without that request.
 */
function noneFits(
  problem: AlsProblem,
  grids: readonly { readonly grid: AlsGrid; readonly fits: boolean }[],
  requested: RequestedGrids,
  { usual, reason = 'no grid has such parts', walked, least }: Refused,
): CapacityError {
  const sized = grids
    .map(({ grid, fits }) => ({ grid, fits, need: leastBytes({ ...problem, grid }).device }))
    .sort((left, right) => Number(right.fits) - Number(left.fits) || left.need - right.need);
  const [best] = sized;
  const error =
    usual ?? new CapacityError(`no grid fits: ${reason}`, { phase: 'plan', advice: 'Use a smaller rank' });
  if (best === undefined) return error;
  const isRequested = Object.keys(requested).length > 0;
  if (!best.fits || !isRequested) return withLeast(error, best, isRequested, least);
  const memory = walked(best.grid);
  const bytes = memory && Math.max(...problem.places.map((place) => memory[place] ?? 0));
  const need = `${needText(bytes, best.need)}, with ${describeGrid(best.grid)}`;
  return new CapacityError(`${error.summary}; with other parts a device needs ${need}`, {
    ...error.details,
    advice: 'Leave the partitions to the planner',
  });
}

/**
 * Adds the least memory that a device must have to an error. `best`: the grid with the least estimate.
 * `isRequested`: the caller requested parts, which a grid of the least memory need not have.
 */
function withLeast(
  { summary, details }: CapacityError,
  best: { readonly grid: AlsGrid; readonly need: number },
  isRequested: boolean,
  least: Refused['least'],
): CapacityError {
  const found = least?.(best.need / HEADROOM);
  if (least !== undefined && found === undefined)
    return new CapacityError(`${summary}; more memory of devices alone does not help`, {
      ...details,
      advice: 'Raise memoryBudget, or use a smaller rank',
    });
  const need = needText(found?.bytes, best.need);
  const where = `is ${need}, with ${describeGrid((found ?? best).grid)}`;
  if (!isRequested) return new CapacityError(`${summary}; the least that a device needs ${where}`, details);
  return new CapacityError(`${summary}; with other parts the least that a device needs ${where}`, {
    ...details,
    advice: 'Leave the partitions to the planner, and give devices that memory',
  });
}

/** Bytes for an error: exact, or if unknown, an estimate. */
function needText(bytes: number | undefined, estimate: number): string {
  return bytes === undefined ? `about ${formatBytes(estimate)}` : `${formatBytes(bytes)} (${bytes} bytes)`;
}

/** Inputs of noneFits. */
interface Refused {
  /** The error of the usual grid. */
  readonly usual: CapacityError | undefined;
  /** The reason why the first rejected grid was not used. */
  readonly reason: string | undefined;
  /** Bytes at each place that a grid's plan takes on these devices; undefined if it does not fit them. */
  readonly walked: (grid: AlsGrid) => PhysicalPlan['memory'] | undefined;
  /**
   * Finds the least memory of a device by making plans, from an estimate; undefined if no memory of devices
   * is enough. If absent, the error names the estimate.
   */
  readonly least?: (estimate: number) => LeastMemory | undefined;
}

/**
 * Plans are tried in the order of their estimated seconds per iteration, multiplied by a handicap: 1 plus
 * this number for each doubling of the devices. The estimates are not exact, so more devices are tried first
 * only if they clearly save time: two devices instead of one if they save 13 %, four instead of two if they
 * save 11.5 %.
 */
const WORTH_DEVICE = 0.15;

/** A plan to try: the usual grid, or its variant by spreadGrid, on the first few of the devices. */
interface UsualWay {
  readonly name: string;
  readonly problem: AlsProblem;
  /** Present if it differs from usualGrid of these devices, which a plan uses by default. */
  readonly grid?: AlsGrid;
  readonly cost: IterationCost;
}

/**
 * Lists the usual grid for each number of devices, in the order to try. More devices are not always faster:
 * devices with their own memory exchange rows through the host, which may take more time than they save. Then
 * it is faster to use fewer devices, or to let each device solve a share of the rows for itself. If the
 * caller requested numbers of parts, or the devices share the host's memory, all devices are used.
 */
function usualWays(
  problem: AlsProblem,
  requested: RequestedGrids,
  problemOn: (compute: AlsProblem['compute']) => AlsProblem,
): UsualWay[] {
  const { compute, device } = problem;
  const isRequested = Object.keys(requested).length > 0;
  if (isRequested || compute.length === 1 || !device.ownMemory)
    return hasRequestedParts(problem.grid, requested)
      ? [{ name: describeGrid(problem.grid), problem, cost: costOf(problem) }]
      : [];
  const ways = compute.flatMap((_, at): UsualWay[] => {
    const some = problemOn(compute.slice(0, at + 1));
    const grid = spreadGrid(some);
    const plain: UsualWay = { name: nameOf(some.grid, some, problem), problem: some, cost: costOf(some) };
    if (JSON.stringify(grid) === JSON.stringify(some.grid)) return [plain];
    const spread = { ...some, grid };
    return [{ name: nameOf(grid, some, problem), problem: spread, grid, cost: costOf(spread) }, plain];
  });
  return ways.sort((left, right) => handicap(left) - handicap(right));
}

/** The name of a grid in the list of rejected plans. `problem` may have only the first devices of `all`. */
function nameOf(grid: AlsGrid, { compute: used }: AlsProblem, { compute: all }: AlsProblem): string {
  const name = describeGrid(grid);
  return used.length === all.length ? name : `${used.length} of ${all.length} devices: ${name}`;
}

/** The number by which plans are ordered: see WORTH_DEVICE. */
function handicap({
  problem: {
    compute: { length: count },
  },
  cost,
}: Pick<UsualWay, 'problem' | 'cost'>): number {
  return cost.seconds * (1 + WORTH_DEVICE * Math.log2(count));
}

/** The reason printed if a plan with `seconds` per iteration leaves devices out; `all`: seconds with all. */
function fewerReason(used: number, given: number, seconds: number, all: number): string {
  const milliseconds = (time: number) => `${(1e3 * time).toFixed(1)} ms`;
  const worth = Math.round(100 * (1 - 1 / (1 + WORTH_DEVICE)));
  return (
    `${used} of ${given} devices ${used === 1 ? 'is' : 'are'} used: an iteration takes about ` +
    `${milliseconds(seconds)}, with all devices ${milliseconds(all)}; a second device must save ${worth} %`
  );
}

/**
 * Limits of the search in spreadGrid: the most parts per device, and the fractions of the ratings in the
 * common part, in steps of STEP percent up to MOST percent. Every device solves the common part for itself.
 */
const MOST_PARTS = 4;
const STEP = 2;
const MOST = 90;

/**
 * A common part (rows that every device solves for itself) must save at least this fraction of a
 * half-iteration, since its ratings take memory on every device.
 */
const COSTS = 0.03;

/** If the fastest device is faster than the slowest by at most this fraction, all count as equally fast. */
const EVEN = 0.02;

/**
 * The usual grid on several devices with their own memory, with the least estimated time. Parts are
 * proportional to the devices' speeds. For each side it chooses the number of parts, and the fraction of the
 * rows that every device solves for itself instead of receiving them from others. Solving them again may take
 * less time: an exchange passes through host memory at a few GB/s, and kernels solve rows of small ranks
 * faster than that.
 */
function spreadGrid(problem: AlsProblem): AlsGrid {
  const { compute, device, grid, profile } = problem;
  // If the ratings need several blocks, their parts were cut before the plan is made and cannot change.
  if (compute.length === 1 || !device.ownMemory || profile.ratings > blockLimit.ratings) return grid;
  const spread = (side: Side): SideGrid => {
    const alone = secondsAlone(problem, side);
    const total = alone.reduce((sum, seconds) => sum + 1 / seconds, 0);
    const speeds = alone.map((seconds) => 1 / seconds / total);
    const even: SideGrid = {
      ...grid[side],
      ...(Math.max(...speeds) > (1 + EVEN) * Math.min(...speeds) ? { speeds } : {}),
    };
    const cuts = Array.from({ length: MOST_PARTS }, (_, at): SideGrid => ({
      ...even,
      q: (at + 1) * compute.length,
    }));
    const ways = cuts.flatMap((cut) => {
      const pipelined = pipelinedOf({ ...problem, grid: { ...grid, [side]: cut } }, side, 1 / total);
      if (pipelined === undefined || cut.q >= problem.rows[side]) return [];
      return Array.from({ length: 1 + MOST / STEP }, (_, at) => ({
        cut,
        common: (at * STEP) / 100,
        seconds:
          pipelineSeconds(pipelined, (at * STEP) / 100) * (at === 0 ? 1 : 1 + COSTS) +
          gramSeconds(problem, side, cut.q + (at === 0 ? 0 : 1)),
      }));
    });
    const best = ways.reduce((least, way) => (way.seconds < least.seconds ? way : least), {
      cut: even,
      common: 0,
      seconds: Infinity,
    });
    return best.common === 0 ? best.cut : { ...best.cut, q: best.cut.q + 1, common: best.common };
  };
  const [users, items] = sides.map(spread);
  return { users, items };
}
