import { availableParallelism } from 'node:os';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { EventSink } from '../../engine/events.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { ThreadPool } from '../../engine/threads/thread-pool.ts';

/** Data of every thread that writes part files, in addition to the data for its kind of work. */
export interface PartWorkerData {
  /** A single number: rows written by all threads so far. */
  readonly written: BigInt64Array;
}

export interface PartTasks<Request> {
  readonly worker: URL;
  readonly workerData: Readonly<Record<string, unknown>>;
  /** Independent requests: every thread can take each of them. */
  readonly requests: readonly Request[];
  readonly workers: number;
  /** Rows of all requests together. */
  readonly rows: number;
  readonly signal: AbortSignal | undefined;
  readonly onEvent: EventSink;
}

const PROGRESS_MILLISECONDS = 100;

/**
 * The number of threads; default one per core. @throws UsageError unless it is a whole number from 1 to 256.
 */
export function checkWorkers(workers: number = availableParallelism()): number {
  if (Number.isInteger(workers) && workers >= 1 && workers <= 256) return workers;
  throw new UsageError(`workers must be a whole number from 1 to 256, got ${workers}`, { phase: 'generate' });
}

/**
 * Runs the requests on worker threads and reports the rows written so far. Returns outcomes in the order of
 * the requests. The first failure stops the others. A failure, or CancelledError, is thrown once all have
 * ended and no thread writes any more.
 */
export async function runPartTasks<Request>(tasks: PartTasks<Request>): Promise<TaskOutcome[]> {
  const { worker, workerData, requests, rows, signal, onEvent } = tasks;
  throwIfAborted(signal, 'generate');
  const written = sharedArray(BigInt64Array, 1);
  const failed = new AbortController();
  const stop = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  const pool = new ThreadPool(worker, Math.max(1, Math.min(tasks.workers, requests.length)), {
    ...workerData,
    written,
  });
  const reportProgress = () => {
    if (!stop.aborted)
      onEvent({
        type: 'phase-progress',
        phase: 'generate',
        done: Number(Atomics.load(written, 0)),
        total: rows,
        unit: 'ratings',
      });
  };
  const timer = setInterval(reportProgress, PROGRESS_MILLISECONDS);
  let failure: unknown;
  const run = async (request: Request): Promise<TaskOutcome | undefined> => {
    try {
      return (await pool.run(() => request, stop)).outcome;
    } catch (error) {
      // The error of a stopped request is not the reason for the stop.
      if (!stop.aborted) failure = error;
      failed.abort();
      return undefined;
    }
  };
  try {
    const outcomes = await Promise.all(requests.map(run));
    throwIfAborted(signal, 'generate');
    if (failure !== undefined) throw failure;
    return outcomes.filter((outcome) => outcome !== undefined);
  } finally {
    clearInterval(timer);
    await pool.close();
  }
}
