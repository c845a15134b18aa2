import { CapacityError } from '../../engine/errors.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import type { KeyType } from '../../engine/keys/key-column.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST } from '../../engine/plan/place.ts';
import { loadingBytes, spilledLoadingBytes } from './sizes.ts';

const READ = 'read';

/** Bytes that Node and Arrow take in a process without data. */
const PROCESS_BYTES = 140 * 2 ** 20;

/**
 * Bytes of each thread, by the type of ids: its heap, its kernels, and the rows that it decodes and numbers
 * at a time (measured by bench/cases/load.ts).
 */
const threadBytes = { int32: 75 * 2 ** 20, int64: 100 * 2 ** 20, utf8: 160 * 2 ** 20 } as const;

/** The limit of the process's memory, and its number of threads. */
export interface MemoryBudget {
  readonly memoryBudget: number;
  readonly workers: number;
  /** Concurrent runs on the same ratings, each with its own factors; default 1. */
  readonly together?: number;
  /** Fewest bytes that reading the ratings needs (see loadingNeed). Default: not more than the plan needs. */
  readonly loading?: number;
}

/**
 * A run with ratings in files decodes and sorts little at a time. It needs less than PROCESS_BYTES and
 * `threadBytes` by these numbers of bytes.
 */
const SPARED = { process: 30 * 2 ** 20, thread: 15 * 2 ** 20 } as const;

export function baseBytes(workers: number, ids: KeyType = 'int32'): number {
  return PROCESS_BYTES + workers * threadBytes[ids];
}

/** Bytes of the process without data in a run with ratings in files; less than baseBytes (see SPARED). */
export function leastBaseBytes(workers: number, ids: KeyType = 'int32'): number {
  return baseBytes(workers, ids) - SPARED.process - workers * SPARED.thread;
}

/**
 * Bytes of the process while it reads ratings. `inParts`: true if ratings are written to files, false if all
 * of them are in blocks in memory.
 */
export function loadingNeed(rows: number, inParts: boolean, workers: number, ids: KeyType): number {
  return inParts ? leastBaseBytes(workers, ids) : baseBytes(workers, ids) + spilledLoadingBytes(rows);
}

/** Bytes that the budget leaves for data. */
export function dataBytes({ memoryBudget, workers }: MemoryBudget): number {
  return Math.max(0, memoryBudget - baseBytes(workers));
}

/** Throws CapacityError if the budget is below the needs of the process without data. */
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
 * Runs a fit. If the budget is too small even to read the ratings, makes the fit's plan instead and throws
 * its error, since that names the minimum budget of the whole run. Impossible for ratings that can be read
 * only once.
 */
export async function orPlanned<T>(
  fit: () => Promise<T>,
  plan: () => Promise<unknown>,
  replayable: boolean,
): Promise<T> {
  try {
    return await fit();
  } catch (error) {
    // An error of a column is about a value, which no budget changes: it is not read again.
    const isBudget =
      error instanceof CapacityError && error.details.phase === READ && error.details.column === undefined;
    if (replayable && isBudget) await plan();
    throw error;
  }
}

/**
 * Numbers of ratings that fit in a budget. With `maximum`, the sorted blocks fit in memory; with `loaded`,
 * also the chunks from which they are sorted. `timed`: ratings have timestamps.
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
 * Throws CapacityError with the minimum budget if ratings do not fit; for a number of ratings that is known
 * before reading.
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

/** Bytes that a run of the plan leaves of the budget. */
export function spareBytes(plan: PhysicalPlan, budget: MemoryBudget): number {
  return budget.memoryBudget - bytesOf(plan, baseBytes(budget.workers), budget).need;
}

/** Bytes of the process that a plan takes, without the memory of devices that have their own. */
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

/** True if the plan's memory fits the budget. */
export function fitsBudget(plan: PhysicalPlan, budget: MemoryBudget, baseOf = baseBytes): boolean {
  return bytesOf(plan, baseOf(budget.workers), budget).need <= budget.memoryBudget;
}

/** The budget that a plan needs. `raised`: with a margin. */
export interface NeededBudget {
  readonly bytes: number;
  readonly raised: number;
  /** The error for the present budget. `how`: text after the budget that would work. */
  refusal(raised: number, how?: string): CapacityError;
}

/** `baseOf`: leastBaseBytes if ratings are in files. */
export function neededBudget(plan: PhysicalPlan, budget: MemoryBudget, baseOf = baseBytes): NeededBudget {
  const { memoryBudget, workers, together = 1 } = budget;
  const { need, words, or } = bytesOf(plan, baseOf(workers), budget);
  const refusal = (raised: number, how = '') =>
    new CapacityError(`${words} but the memory budget is ${formatBytes(memoryBudget)}`, {
      phase: 'plan',
      advice: `Raise memoryBudget to ${formatBytes(raised)} or more${how}, ${or}${together > 1 ? ', make fewer runs at the same time' : ''}, or train on a part of the data`,
    });
  return { bytes: need, raised: Math.ceil(1.02 * need), refusal };
}

/**
 * Throws CapacityError if the plan's memory exceeds the budget, before anything is allocated. `baseOf`: see
 * neededBudget.
 */
export function requireBudget(plan: PhysicalPlan, budget: MemoryBudget, baseOf = baseBytes): void {
  const { bytes, raised, refusal } = neededBudget(plan, budget, baseOf);
  if (bytes > budget.memoryBudget) throw refusal(raised);
}
