import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST } from '../../engine/plan/place.ts';
import { loadingBytes } from '../../operators/planner/sizes.ts';

/** Memory of the process itself, without data: Node, Arrow, the Parquet decoder at work. */
const BASE_BYTES = 300 * 2 ** 20;

/** Throws CapacityError for a budget that the process itself exceeds. `name` is the name of the budget in the message. */
export function requireBase(budget: number, name: string): void {
  if (budget > BASE_BYTES) return;
  throw new CapacityError(`${name} is below what the process itself needs, about ${formatBytes(BASE_BYTES)}`, { advice: 'Give at least 400MiB' });
}

/** Number of ratings that the budget holds while they are loaded. */
export function rowsWithin(budget: number): number {
  requireBase(budget, `the memory budget of ${formatBytes(budget)}`);
  return Math.max(1, Math.floor((budget - BASE_BYTES) / loadingBytes(1)));
}

/** Throws CapacityError when the plan's memory is beyond the budget, before anything of it is allocated. */
export function requireBudget({ memory, devices }: PhysicalPlan, budget: number): void {
  // A device with memory of its own takes none of the process's.
  const factorBytes = devices.reduce((sum, { place, ownMemory }) => sum + (ownMemory ? 0 : (memory[place] ?? 0)), 0);
  const hostBytes = memory[HOST] ?? 0;
  const need = BASE_BYTES + hostBytes + factorBytes;
  if (need <= budget) return;
  throw new CapacityError(
    `the run needs about ${formatBytes(need)} (ratings ${formatBytes(hostBytes)}, factors ${formatBytes(factorBytes)}, the process itself ${formatBytes(BASE_BYTES)}) but the memory budget is ${formatBytes(budget)}`,
    { phase: 'plan', advice: 'Raise memoryBudget, lower the rank, or train on a part of the data' },
  );
}
