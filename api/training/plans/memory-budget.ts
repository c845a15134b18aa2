import { CapacityError } from '../../../engine/errors.ts';
import { formatBytes, formatCount } from '../../../engine/format.ts';
import type { KeyType } from '../../../engine/keys/key-column.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import { loadingBytes, spilledLoadingBytes } from '../../../operators/planner/sizes.ts';

const READ = 'read';

/** Memory of the process itself, without data: Node and Arrow. */
const PROCESS_BYTES = 140 * 2 ** 20;

/**
 * Of each thread: its heap, its kernels, and what it decodes and numbers at a time, by the kind of ids
 * (bench/memory.ts measures them).
 */
const threadBytes = { int32: 75 * 2 ** 20, int64: 100 * 2 ** 20, utf8: 160 * 2 ** 20 } as const;

/** The bound on the process, and the threads that work in it. */
export interface MemoryBudget {
  readonly memoryBudget: number;
  readonly workers: number;
  /** Runs at the same time on the same ratings, each with factors of its own; default 1. */
  readonly together?: number;
  /**
   * Bytes without which the ratings cannot be read (see loadingNeed); default: no more than the plan takes.
   */
  readonly loading?: number;
}

/**
 * The parts of those that a run whose ratings go by way of files can do without: what it decodes and sorts at
 * a time is small.
 */
const SPARED = { process: 30 * 2 ** 20, thread: 15 * 2 ** 20 } as const;

export function baseBytes(workers: number, ids: KeyType = 'int32'): number {
  return PROCESS_BYTES + workers * threadBytes[ids];
}

/** The same of a run whose ratings go by way of files. */
export function leastBaseBytes(workers: number, ids: KeyType = 'int32'): number {
  return baseBytes(workers, ids) - SPARED.process - workers * SPARED.thread;
}

/**
 * Bytes of the process while it reads ratings: of those that go by way of files `inParts`, else of all of
 * them in blocks.
 */
export function loadingNeed(rows: number, inParts: boolean, workers: number, ids: KeyType): number {
  return inParts ? leastBaseBytes(workers, ids) : baseBytes(workers, ids) + spilledLoadingBytes(rows);
}

/** Bytes of a budget for data, beside the process itself. */
export function dataBytes({ memoryBudget, workers }: MemoryBudget): number {
  return Math.max(0, memoryBudget - baseBytes(workers));
}

/** Throws CapacityError for a budget that the process itself exceeds. */
function requireBase({ memoryBudget, workers }: MemoryBudget, ids: KeyType): void {
  const base = leastBaseBytes(workers, ids);
  if (memoryBudget > base) return;
  const fewer = workers > 1 ? ', or fewer workers' : '';
  throw new CapacityError(
    `the memory budget of ${formatBytes(memoryBudget)} is below what the process itself needs, about ${formatBytes(base)} with ${workers === 1 ? 'one thread' : `${workers} threads`}${ids === 'utf8' ? ' and ids of text' : ''}`,
    {
      phase: READ,
      advice: `Give at least ${formatBytes(base + PROCESS_BYTES / 4)}${fewer}`,
    },
  );
}

/**
 * Carries out a fit. Where the budget is too small to read the ratings, the error is that of their plan: it
 * names the least budget for all of the run. Ratings that come only once have no plan.
 */
export async function orPlanned<T>(
  fit: () => Promise<T>,
  plan: () => Promise<unknown>,
  replayable: boolean,
): Promise<T> {
  try {
    return await fit();
  } catch (error) {
    if (replayable && error instanceof CapacityError && error.details.phase === READ) await plan();
    throw error;
  }
}

/**
 * Numbers of ratings that a budget allows: `maximum` with their blocks in memory, `loaded` with the chunks
 * that blocks are sorted from as well. `timed`: ratings have timestamps.
 */
export interface RowsWithin {
  readonly maximum: number;
  readonly loaded: number;
}

export function rowsWithin(
  { memoryBudget, workers }: MemoryBudget,
  ids: KeyType,
  timed: boolean,
): RowsWithin {
  requireBase({ memoryBudget, workers }, ids);
  const free = Math.max(0, memoryBudget - baseBytes(workers, ids));
  return {
    maximum: Math.max(1, Math.floor(free / spilledLoadingBytes(1))),
    loaded: Math.floor(free / loadingBytes(1, timed)),
  };
}

/**
 * Throws CapacityError where it is known before they are read that ratings do not fit, with the least budget
 * that does.
 */
export function requireRows(rows: number, ids: KeyType, { memoryBudget, workers }: MemoryBudget): void {
  const need = loadingNeed(rows, false, workers, ids);
  if (need <= memoryBudget) return;
  throw new CapacityError(
    `${formatCount(rows)} ratings need about ${formatBytes(need)} but the memory budget is ${formatBytes(memoryBudget)}`,
    {
      phase: READ,
      advice: `Raise memoryBudget to ${formatBytes(Math.ceil(1.02 * need))} or more, or train on a part of the data`,
    },
  );
}

/** Bytes of the process that a plan takes. A device with memory of its own takes none. */
function bytesOf(
  { memory, devices }: PhysicalPlan,
  base: number,
  { together = 1, loading = 0 }: MemoryBudget,
) {
  const factorBytes =
    together * devices.reduce((sum, { place, ownMemory }) => sum + (ownMemory ? 0 : (memory[place] ?? 0)), 0);
  const hostBytes = memory[HOST] ?? 0;
  const run = base + hostBytes + factorBytes;
  const parts = ` (ratings ${formatBytes(hostBytes)}, factors ${formatBytes(factorBytes)}${together > 1 ? ` of ${together} runs` : ''}, the process itself ${formatBytes(base)})`;
  return {
    need: Math.max(run, loading),
    ...(run >= loading
      ? { words: `the run needs about ${formatBytes(run)}${parts}`, or: 'lower the rank' }
      : { words: `reading the ratings needs about ${formatBytes(loading)}`, or: 'use fewer workers' }),
  };
}

/** True where the plan's memory is within the budget. */
export function fitsBudget(plan: PhysicalPlan, budget: MemoryBudget, baseOf = baseBytes): boolean {
  return bytesOf(plan, baseOf(budget.workers), budget).need <= budget.memoryBudget;
}

/**
 * Throws CapacityError when the plan's memory is beyond the budget, before anything of it is allocated.
 * `baseOf`: leastBaseBytes where ratings go by way of files.
 */
export function requireBudget(plan: PhysicalPlan, budget: MemoryBudget, baseOf = baseBytes): void {
  const { memoryBudget, workers, together = 1 } = budget;
  const { need, words, or } = bytesOf(plan, baseOf(workers), budget);
  if (need <= memoryBudget) return;
  throw new CapacityError(`${words} but the memory budget is ${formatBytes(memoryBudget)}`, {
    phase: 'plan',
    advice: `Raise memoryBudget to ${formatBytes(Math.ceil(1.02 * need))} or more, ${or}${together > 1 ? ', make fewer runs at the same time' : ''}, or train on a part of the data`,
  });
}
