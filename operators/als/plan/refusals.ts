/** Errors for plans that do not fit into memory, and the reasons printed for rejected grids. */
import { CapacityError, UsageError } from '../../../engine/errors.ts';
import { formatBytes, formatCount } from '../../../engine/format.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import { blockLimit } from '../../planner/sizes.ts';
import type { RequestedGrids } from '../als-params.ts';
import { ALL_ROWS } from '../solver-choice.ts';
import { describeGrid, HEADROOM } from './candidates.ts';
import { blockShare, leastBytes } from './memory.ts';
import type { AlsGrid, AlsProblem } from './problem.ts';
import type { LeastMemory } from './least-memory.ts';

/** Throws UsageError if devices are to exchange CG vectors but the solver needs whole normal equations. */
export function requireVectorSums({ sums }: RequestedGrids, { solver }: AlsProblem): void {
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
export function requireVertical({ users, items, sums, groups }: RequestedGrids): void {
  if ((sums === undefined && groups === undefined) || users !== undefined || items !== undefined) return;
  const requested = sums === undefined ? `partitionGroups ${groups?.join(',')}` : `partitionSums ${sums}`;
  throw new UsageError(
    `${requested} acts only if a side is solved from vertical parts, and no grid for these devices has them`,
    { phase: 'plan', advice: 'Ask for vertical parts by partitionUsers or partitionItems, or leave it out' },
  );
}

/** Returns the plan if the host has enough memory for it, else throws. */
export function requireHost(plan: PhysicalPlan, hostBytes = Infinity): PhysicalPlan {
  const bytes = plan.memory[HOST] ?? 0;
  if (bytes > hostBytes)
    throw new CapacityError(
      `needs ${formatBytes(bytes)} (${bytes} bytes) of host memory, which has ${formatBytes(hostBytes)}`,
      { phase: 'plan', advice: 'Raise memoryBudget, or use a smaller rank' },
    );
  return plan;
}

/** Calls a function that makes a plan. Returns the plan, or the CapacityError that the function threw. */
export function fitting(plan: () => PhysicalPlan): {
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
export function tooLarge(problem: AlsProblem, grid: AlsGrid, host = Infinity): string {
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
export function noneFits(
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
