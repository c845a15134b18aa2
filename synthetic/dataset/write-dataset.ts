import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileProblem } from '../../connectors/files/file-problem.ts';
import { atomicOutput } from '../../connectors/output/atomic-output.ts';
import type { WriteSummary } from '../../connectors/output/checked-sink.ts';
import { isDatasetEntry } from '../../connectors/parquet/part-names.ts';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import { type EventSink, noEvents } from '../../engine/events.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { ThreadPool } from '../../engine/threads/thread-pool.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import { ratingParts } from '../preset.ts';
import type { PartRequest, PartWork, PartWorkerData } from './part-worker.ts';

/**
 * The version of the generator; it increases when the same preset and seed give other bytes than before. 2:
 * part files end with a range of users, so that threads write them in parallel; the ratings and their order
 * are unchanged from 1.
 */
export const GENERATOR_VERSION = 2;

/** Default number of ratings in a part file (approximate). */
export const RATINGS_PER_PART = 1 << 22;

const PROGRESS_MILLISECONDS = 100;

/** Options of every data set that is written. */
export interface DatasetOptions {
  readonly output: string;
  /** Replaces an existing data set. */
  readonly overwrite?: boolean;
  /** Number of threads; it does not affect the files. Default: one per core. */
  readonly workers?: number;
  readonly signal?: AbortSignal;
  readonly onEvent?: EventSink;
}

export interface WrittenDataset<Part extends string, Description> {
  readonly description: Description;
  readonly files: Readonly<Record<Part, WriteSummary>>;
  readonly seconds: number;
}

/**
 * The number of threads; default one per core. @throws UsageError unless it is a whole number from 1 to 256.
 */
export function checkWorkers(workers: number = availableParallelism()): number {
  if (Number.isInteger(workers) && workers >= 1 && workers <= 256) return workers;
  throw new UsageError(`workers must be a whole number from 1 to 256, got ${workers}`, { phase: 'generate' });
}

/**
 * Writes a folder with the parts' folders ("" is the data set itself) and dataset.json. `fill` plans the work,
 * has it done by `run`, and returns the description. The folder appears completely or not at all. It is
 * registered in this thread, so that the process can remove it when it is asked to end.
 *
 * @throws UsageError for output that must not be replaced; CancelledError.
 */
export async function writeDataset<Part extends string, Description extends object>(
  options: DatasetOptions & { readonly parts: readonly Part[]; readonly rows: number },
  fill: (
    run: (work: PartWork, requests: readonly PartRequest[]) => Promise<readonly TaskOutcome[]>,
  ) => Promise<Description>,
): Promise<WrittenDataset<Part, Description>> {
  const { output, overwrite, parts, rows, signal, onEvent = noEvents } = options;
  const workers = checkWorkers(options.workers);
  throwIfAborted(signal, 'generate');
  const started = performance.now();
  const pending = await atomicOutput(output, {
    kind: 'folder',
    overwrite,
    recognizes: (path) => recognizes(path, parts),
  });
  const files = Object.fromEntries(
    parts.map((part) => [
      part,
      { path: part === '' ? output : join(output, part), rows: 0, bytes: 0, files: 0 },
    ]),
  ) as Record<Part, { path: string; rows: number; bytes: number; files: number }>;
  const run = async (work: PartWork, requests: readonly PartRequest[]) => {
    const outcomes = await runRequests(
      { ...options, workers },
      { ...work, folder: pending.temporary },
      requests,
    );
    for (const { values } of outcomes) {
      for (const { part, rows, bytes } of values!.files as unknown as readonly WrittenFile<Part>[]) {
        files[part].rows += rows;
        files[part].bytes += bytes;
        files[part].files++;
      }
    }
    return outcomes;
  };
  let description: Description;
  try {
    for (const part of parts) await mkdir(join(pending.temporary, part), { recursive: true });
    onEvent({ type: 'phase-start', phase: 'generate', total: rows, unit: 'ratings' });
    description = await fill(run);
    await writeDescription(join(pending.temporary, 'dataset.json'), description);
    await pending.commit();
  } catch (error) {
    throw await pending.fail(error);
  }
  const seconds = (performance.now() - started) / 1000;
  onEvent({ type: 'phase-end', phase: 'generate', seconds, done: rows, unit: 'ratings' });
  return { description, files, seconds };
}

interface WrittenFile<Part> {
  readonly part: Part;
  readonly rows: number;
  readonly bytes: number;
}

/**
 * Runs the requests on threads and reports the rows written so far. Returns outcomes in the order of the
 * requests. The first failure stops the others. A failure, or CancelledError, is thrown once all have ended
 * and no thread writes any more.
 */
async function runRequests(
  {
    rows,
    workers,
    signal,
    onEvent = noEvents,
  }: DatasetOptions & { readonly rows: number; readonly workers: number },
  work: Omit<PartWorkerData, 'written'>,
  requests: readonly PartRequest[],
): Promise<readonly TaskOutcome[]> {
  throwIfAborted(signal, 'generate');
  const written = sharedArray(BigInt64Array, 1);
  const failed = new AbortController();
  const stop = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  const threads = Math.max(1, Math.min(workers, requests.length));
  const worker = workerFile(new URL('./part-worker.js', import.meta.url));
  const pool = new ThreadPool(worker, threads, { ...work, written });
  const timer = setInterval(() => {
    const done = Number(Atomics.load(written, 0));
    if (!stop.aborted)
      onEvent({ type: 'phase-progress', phase: 'generate', done, total: rows, unit: 'ratings' });
  }, PROGRESS_MILLISECONDS);
  let failure: unknown;
  const run = async (request: PartRequest): Promise<TaskOutcome | undefined> => {
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

async function writeDescription(file: string, description: object): Promise<void> {
  try {
    await writeFile(file, `${JSON.stringify(description, undefined, 2)}\n`);
  } catch (error) {
    throw fileProblem(error, 'write', file);
  }
}

/** True for an entry that a data set with these parts, or with train/ and test/, may have. */
function recognizes(path: string, parts: readonly string[]): boolean {
  if (path === 'dataset.json') return true;
  const part = ratingParts.find((name) => path.startsWith(`${name}/`));
  if (part === undefined && !parts.includes('')) return false;
  const inside = part === undefined ? path : path.slice(part.length + 1);
  return inside === '' || isDatasetEntry(inside);
}
