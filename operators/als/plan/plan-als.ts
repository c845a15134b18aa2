import { CapacityError, UsageError } from '../../../engine/errors.ts';
import { formatBytes, formatCount } from '../../../engine/format.ts';
import type { PhysicalPlan, RejectedPlan } from '../../../engine/plan/physical-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { rankingMetricOf } from '../../params/common.ts';
import { candidateGrids, describeGrid, HEADROOM } from './cost/candidates.ts';
import { costOf, type IterationCost } from './cost/cost.ts';
import { blockShare, leastBytes } from './cost/device-bytes.ts';
import { blockLimit } from '../../planner/sizes.ts';
import { ratesOf } from '../../planner/device-rates.ts';
import { spreadGrid } from './cost/spread.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import { sizedParams } from '../implicit/sized-params.ts';
import type { AlsParams } from '../params.ts';
import { type Asked, askedPartitions, requireGroupsOf, requireRowsForParts } from '../partitions.ts';
import { ALL_ROWS } from '../solver-choice.ts';
import { type AlsGrid, type Side, sides, suits, verticalParts } from './grid.ts';
import { planOfGrid } from './plan-of-grid.ts';
import { type AlsPlanOptions, type AlsProblem, alsProblem } from './problem.ts';

/**
 * Another grid than the usual one must save so much of an iteration, and so many seconds, and twice the
 * devices so much of it: estimates are not exact.
 */
const WORTH = { share: 0.2, seconds: 0.005, device: 0.15 };

/** Blocks of a side whose steps are walked only to tell how much memory they need. */
const MOST_WALKED = 4096;

/** Times that a grid which the walk refuses is cut into twice the parts. */
const FINER = 1;

/**
 * The physical plan of ALS: a pure function of profile, parameters and devices. The usual grid is taken where
 * it fits: each side in a part a device. Else, or with several devices, the grid with the least estimated
 * time that fits; those that were rejected are listed with their reasons. Throws CapacityError when none
 * fits, before anything is allocated.
 *
 */
export function planAls(
  profile: RatingsProfile,
  given: AlsParams,
  devices: PlanDevices,
  choices?: AlsChoices,
  options: AlsPlanOptions = {},
): PhysicalPlan {
  const params = sizedParams(given, profile);
  const planOf = (grid?: AlsGrid, on = devices) =>
    requireHost(planOfGrid(profile, params, on, choices, { ...options, grid }), options.hostBytes);
  if (options.grid !== undefined) return planOf(options.grid);
  const problem = alsProblem(profile, params, devices, choices, options);
  const asked = askedPartitions(params);
  requireRowsForParts(asked, problem.rows);
  requireGroupsOf(asked, problem.compute.length);
  if (asked.sums === 'vectors' && problem.solver.cgBelow < ALL_ROWS)
    throw new UsageError(
      `partitionSums vectors needs conjugate gradients for all rows, and the solver is ${problem.solver.kernel}`,
      { phase: 'plan', advice: 'Give solver cg, or leave partitionSums at auto' },
    );
  const rejected: RejectedPlan[] = [];
  const ways = usualWays(problem, asked, (compute) =>
    alsProblem(profile, params, { ...devices, compute }, choices, options),
  ).filter((way) => blockShare(way.problem) <= 1);
  let usual: ReturnType<typeof fitting> | undefined;
  let usualWay: UsualWay = { name: describeGrid(problem.grid), problem, cost: costOf(problem) };
  for (const way of ways) {
    if (usual?.plan !== undefined) {
      rejected.push({ name: way.name, seconds: way.cost.seconds, reason: 'slower' });
      continue;
    }
    const tried = fitting(() => planOf(way.grid, { ...devices, compute: way.problem.compute }));
    if (tried.plan !== undefined) [usual, usualWay] = [tried, way];
    else
      rejected.push({
        name: way.name,
        seconds: way.cost.seconds,
        reason: (tried.error as CapacityError).summary,
      });
    if (way.problem.compute.length === problem.compute.length) usual ??= tried;
  }
  if (usual?.plan && problem.compute.length === 1 && !options.compares) return usual.plan;
  const usualCost = usualWay.cost;
  const worthIt = (cost: IterationCost) =>
    usual?.plan === undefined ||
    (cost.seconds < (1 - WORTH.share) * usualCost.seconds &&
      cost.seconds < usualCost.seconds - WORTH.seconds);
  // All items are ranked at once.
  const whole =
    problem.testRatings !== undefined && params.implicitPrefs && rankingMetricOf(params) !== undefined
      ? (['items'] as const)
      : [];
  const limits = {
    whole,
    hostBytes: options.hostBytes ?? Infinity,
    ratings:
      options.ratings ?? (problem.device.ownMemory ? (['device', 'host'] as const) : (['device'] as const)),
  };
  const candidates = candidateGrids(problem, { ...limits, asked })
    .map((candidate) => ({ ...candidate, cost: costOf({ ...problem, grid: candidate.grid }) }))
    .sort((left, right) => left.cost.seconds - right.cost.seconds);
  let chosen = usual?.plan && { plan: usual.plan, cost: usualCost };
  for (const { grid, fits, cost } of candidates) {
    const name = describeGrid(grid);
    if (!fits)
      rejected.push({ name, seconds: cost.seconds, reason: tooLarge(problem, grid, options.hostBytes) });
    else if (chosen !== undefined && (chosen.plan !== usual?.plan || !worthIt(cost))) {
      if (name !== usualWay.name && rejected.every((one) => one.name !== name))
        rejected.push({
          name,
          seconds: cost.seconds,
          reason: cost.seconds >= chosen.cost.seconds ? 'slower' : 'not worth leaving the usual grid',
        });
    } else {
      const tried = finer(grid, problem.rows, planOf, (cut) => suits(cut, asked));
      if (tried.plan === undefined) rejected.push({ name, seconds: cost.seconds, reason: tried.reason });
      else {
        if (chosen !== undefined)
          rejected.push({ name: usualWay.name, seconds: chosen.cost.seconds, reason: 'slower' });
        chosen = { plan: tried.plan, cost: costOf({ ...problem, grid: tried.grid }) };
      }
    }
  }
  // The walk over a plan for devices without a bound.
  const unbounded = {
    ...devices,
    compute: devices.compute.map((device) => ({ ...device, capacityBytes: null })),
  };
  const walked = (grid: AlsGrid) =>
    fitting(() => planOfGrid(profile, params, unbounded, choices, { ...options, grid })).plan?.memory;
  if (chosen === undefined && candidates.length === 0) requireVertical(asked);
  if (chosen === undefined)
    throw noneFits(problem, candidateGrids(problem, { ...limits, asked: {} }), asked, {
      usual: usual?.error,
      reason: rejected[0]?.reason,
      walked,
    });
  return { ...chosen.plan, estimate: { ...chosen.cost, rates: ratesText(problem) }, rejected };
}

/**
 * Throws UsageError for sums of vertical parts that are asked for, where no grid that comes into question has
 * such parts.
 */
function requireVertical({ users, items, sums, groups }: Asked): void {
  if ((sums === undefined && groups === undefined) || users !== undefined || items !== undefined) return;
  const asked = sums === undefined ? `partitionGroups ${groups?.join(',')}` : `partitionSums ${sums}`;
  throw new UsageError(
    `${asked} acts where a side is solved from vertical parts, and no grid for these devices has them`,
    { phase: 'plan', advice: 'Ask for vertical parts by partitionUsers or partitionItems, or leave it out' },
  );
}

/** The usual grid on some of the devices. */
interface UsualWay {
  readonly name: string;
  readonly problem: AlsProblem;
  /** Given where it is not the one that devices have without a comparison of times. */
  readonly grid?: AlsGrid;
  readonly cost: IterationCost;
}

/**
 * The usual grid on each number of devices, in the order in which they are to be tried: those with memory of
 * their own exchange rows through the host, which may take longer than what they save; then fewer are faster,
 * or a share of the rows is solved on each of them. Of parts that are asked for, and of devices that share
 * the host's memory, all have some.
 *
 */
function usualWays(
  problem: AlsProblem,
  asked: Asked,
  problemOn: (compute: AlsProblem['compute']) => AlsProblem,
): UsualWay[] {
  const { compute, device } = problem;
  const isAsked = Object.keys(asked).length > 0;
  if (isAsked || compute.length === 1 || !device.ownMemory)
    return suits(problem.grid, asked)
      ? [{ name: describeGrid(problem.grid), problem, cost: costOf(problem) }]
      : [];
  const ways = compute.flatMap((_, at): UsualWay[] => {
    const some = problemOn(compute.slice(0, at + 1));
    const grid = spreadGrid(some);
    const plain: UsualWay = { name: nameOf(some.grid, at + 1), problem: some, cost: costOf(some) };
    return JSON.stringify(grid) === JSON.stringify(some.grid)
      ? [plain]
      : [
          { name: nameOf(grid, at + 1), problem: { ...some, grid }, grid, cost: costOf({ ...some, grid }) },
          plain,
        ];
  });
  function nameOf(grid: AlsGrid, count: number): string {
    return count === compute.length
      ? describeGrid(grid)
      : `${count} of ${compute.length} devices: ${describeGrid(grid)}`;
  }
  const handicap = ({
    problem: {
      compute: { length: count },
    },
    cost,
  }: UsualWay) => cost.seconds * (1 + WORTH.device * Math.log2(count));
  return ways.sort((left, right) => handicap(left) - handicap(right));
}

/** The plan, where the host has the memory for it. */
function requireHost(plan: PhysicalPlan, hostBytes = Infinity): PhysicalPlan {
  const bytes = plan.memory[HOST] ?? 0;
  if (bytes > hostBytes)
    throw new CapacityError(
      `needs ${formatBytes(bytes)} (${bytes} bytes) of host memory, which has ${formatBytes(hostBytes)}`,
      { phase: 'plan', advice: 'Raise memoryBudget, or use a smaller rank' },
    );
  return plan;
}

/** The plan, or the reason why it does not fit. */
function fitting(plan: () => PhysicalPlan): { readonly plan?: PhysicalPlan; readonly error?: CapacityError } {
  try {
    return { plan: plan() };
  } catch (error) {
    if (!(error instanceof CapacityError)) throw error;
    return { error };
  }
}

/**
 * The plan of a grid, with more parts where the walk over its steps finds it too large; a part has a row at
 * least.
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
    const cutOf = (side: Side) => ({ ...cut[side], q: Math.min(rows[side], 2 * cut[side].q) });
    const next: AlsGrid = { users: cutOf('users'), items: cutOf('items') };
    if (sides.every((side) => next[side].q === cut[side].q) || !may(next)) break;
    cut = next;
  }
  return { grid: cut, reason };
}

/** The bound that a grid is beyond. */
function tooLarge(problem: AlsProblem, grid: AlsGrid, host = Infinity): string {
  const { device: need, host: onHost } = leastBytes({ ...problem, grid });
  if (onHost > host)
    return `needs about ${formatBytes(onHost)} of host memory, which has ${formatBytes(host)}`;
  const [least] = [...problem.compute].sort(
    (left, right) => (left.capacityBytes ?? Infinity) - (right.capacityBytes ?? Infinity),
  );
  if (least.capacityBytes !== null && need > HEADROOM * least.capacityBytes)
    return `needs about ${formatBytes(need)} at ${least.place}, which has ${formatBytes(least.capacityBytes)}${need > least.capacityBytes ? '' : ': too little where parts are unequal'}`;
  if (blockShare({ ...problem, grid }) > 1)
    return `has parts of more than ${formatCount(blockLimit.ratings)} ratings`;
  return `has buffers beyond the ${formatBytes(problem.device.bindingBytes ?? 0)} that ${problem.device.place} binds`;
}

/**
 * The error of a problem without a grid that fits: the least that a device must have, or the grid that would
 * fit if parts were not asked for.
 */
function noneFits(
  problem: AlsProblem,
  grids: readonly { readonly grid: AlsGrid; readonly fits: boolean }[],
  asked: Asked,
  { usual, reason = 'none has such parts', walked }: Refused,
): CapacityError {
  const sized = grids
    .map(({ grid, fits }) => ({ grid, fits, need: leastBytes({ ...problem, grid }).device }))
    .sort((left, right) => Number(right.fits) - Number(left.fits) || left.need - right.need);
  const [best] = sized;
  const { summary, details } =
    usual ?? new CapacityError(`no grid fits: ${reason}`, { phase: 'plan', advice: 'Use a smaller rank' });
  if (best === undefined) return usual ?? new CapacityError(summary, details);
  const isAsked = Object.keys(asked).length > 0;
  // A grid with very many blocks takes long to walk.
  const memory = sides.some((side) => best.grid[side].q * verticalParts(best.grid, side) > MOST_WALKED)
    ? undefined
    : walked(best.grid);
  const bytes = memory && Math.max(...problem.places.map((place) => memory[place] ?? 0));
  const need =
    bytes === undefined ? `about ${formatBytes(best.need)}` : `${formatBytes(bytes)} (${bytes} bytes)`;
  return new CapacityError(
    `${summary}; ${best.fits && isAsked ? 'with other parts a device needs' : 'the least that a device needs is'} ${need}, with ${describeGrid(best.grid)}`,
    { ...details, ...(best.fits && isAsked ? { advice: 'Leave the partitions to the planner' } : {}) },
  );
}

/** The reasons against the grids, and the bytes of a grid by place as the walk finds them. */
interface Refused {
  readonly usual: CapacityError | undefined;
  readonly reason: string | undefined;
  readonly walked: (grid: AlsGrid) => PhysicalPlan['memory'] | undefined;
}

function ratesText({ device, solver }: AlsProblem): string {
  const rates = ratesOf(device, solver.cgBelow > 0 ? solver.cgSteps : 0);
  return `rates of ${rates.name}: ${rates.source}; ${formatBytes(rates.link)}/s between host and device, ${formatBytes(rates.exchange)}/s exchanged with other devices, ${formatBytes(rates.memory)}/s in its memory`;
}
