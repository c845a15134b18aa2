import { CapacityError } from '../../../engine/errors.ts';
import { formatBytes } from '../../../engine/format.ts';
import type { KeyType } from '../../../engine/keys/key-column.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import { loadingBytes, spilledLoadingBytes } from '../../../operators/planner/sizes.ts';

/** Memory of the process itself, without data: Node and Arrow. */
const PROCESS_BYTES = 140 * 2 ** 20;

/** Of each thread: its heap, its kernels, and what it decodes and numbers at a time, by the kind of ids (bench/memory.ts measures them). */
const threadBytes = { int32: 75 * 2 ** 20, int64: 100 * 2 ** 20, utf8: 160 * 2 ** 20 } as const;

/** The bound on the process, and the threads that work in it. */
export interface MemoryBudget {
  readonly memoryBudget: number;
  readonly workers: number;
  /** Runs at the same time on the same ratings, each with factors of its own; default 1. */
  readonly together?: number;
}

/** The parts of those that a run whose ratings go by way of files can do without: what it decodes and sorts at a time is small. */
const SPARED = { process: 30 * 2 ** 20, thread: 15 * 2 ** 20 } as const;

export function baseBytes(workers: number, ids: KeyType = 'int32'): number {
  return PROCESS_BYTES + workers * threadBytes[ids];
}

/** The same of a run whose ratings go by way of files. */
export function leastBaseBytes(workers: number, ids: KeyType = 'int32'): number {
  return baseBytes(workers, ids) - SPARED.process - workers * SPARED.thread;
}

/** Throws CapacityError for a budget that the process itself exceeds. `name` is the name of the budget in the message. */
export function requireBase(budget: number, name: string, workers = 1, ids: KeyType = 'int32'): void {
  const base = leastBaseBytes(workers, ids);
  if (budget > base) return;
  const fewer = workers > 1 ? ', or fewer workers' : '';
  throw new CapacityError(`${name} is below what the process itself needs, about ${formatBytes(base)} with ${workers === 1 ? 'one thread' : `${workers} threads`}${ids === 'utf8' ? ' and ids of text' : ''}`, { advice: `Give at least ${formatBytes(base + PROCESS_BYTES / 4)}${fewer}` });
}

/** Numbers of ratings that a budget allows: `maximum` with their blocks in memory, `loaded` with the chunks that blocks are sorted from as well. `timed`: ratings have timestamps. */
export interface RowsWithin {
  readonly maximum: number;
  readonly loaded: number;
}

export function rowsWithin({ memoryBudget, workers }: MemoryBudget, ids: KeyType, timed: boolean): RowsWithin {
  requireBase(memoryBudget, `the memory budget of ${formatBytes(memoryBudget)}`, workers, ids);
  const free = Math.max(0, memoryBudget - baseBytes(workers, ids));
  return { maximum: Math.max(1, Math.floor(free / spilledLoadingBytes(1))), loaded: Math.floor(free / loadingBytes(1, timed)) };
}

/** Throws CapacityError where it is known before they are read that ratings do not fit, with the least budget that does. */
export function requireRows(rows: number, ids: KeyType, { memoryBudget, workers }: MemoryBudget): void {
  const need = baseBytes(workers, ids) + spilledLoadingBytes(rows);
  if (need <= memoryBudget) return;
  throw new CapacityError(`${rows.toLocaleString('en')} ratings need about ${formatBytes(need)} but the memory budget is ${formatBytes(memoryBudget)}`, {
    phase: 'read',
    advice: `Raise memoryBudget to ${formatBytes(Math.ceil(1.02 * need))} or more, or train on a part of the data`,
  });
}

/** Bytes of the process that a plan takes. A device with memory of its own takes none. */
function bytesOf({ memory, devices }: PhysicalPlan, base: number, together = 1) {
  const factorBytes = together * devices.reduce((sum, { place, ownMemory }) => sum + (ownMemory ? 0 : (memory[place] ?? 0)), 0);
  const hostBytes = memory[HOST] ?? 0;
  return { factorBytes, hostBytes, base, need: base + hostBytes + factorBytes };
}

/** True where the plan's memory is within the budget. */
export function fitsBudget(plan: PhysicalPlan, { memoryBudget, workers, together }: MemoryBudget, baseOf = baseBytes): boolean {
  return bytesOf(plan, baseOf(workers), together).need <= memoryBudget;
}

/** Throws CapacityError when the plan's memory is beyond the budget, before anything of it is allocated. `baseOf`: leastBaseBytes where ratings go by way of files. */
export function requireBudget(plan: PhysicalPlan, { memoryBudget, workers, together = 1 }: MemoryBudget, baseOf = baseBytes): void {
  const { factorBytes, hostBytes, base, need } = bytesOf(plan, baseOf(workers), together);
  if (need <= memoryBudget) return;
  throw new CapacityError(
    `the run needs about ${formatBytes(need)} (ratings ${formatBytes(hostBytes)}, factors ${formatBytes(factorBytes)}${together > 1 ? ` of ${together} runs` : ''}, the process itself ${formatBytes(base)}) but the memory budget is ${formatBytes(memoryBudget)}`,
    { phase: 'plan', advice: `Raise memoryBudget to ${formatBytes(Math.ceil(1.02 * need))} or more, lower the rank${together > 1 ? ', make fewer runs at the same time' : ''}, or train on a part of the data` },
  );
}
