import { totalmem } from 'node:os';
import type { WriteSummary } from '../../connectors/output/checked-sink.ts';
import { CapacityError, throwIfAborted } from '../../engine/errors.ts';
import { type EventSink, noEvents } from '../../engine/events.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import {
  checkCopies,
  copiedIds,
  type Copies,
  copyGroups,
  type CopyLayout,
  oneCopy,
} from '../copies/copies.ts';
import { RATINGS_PER_PART, summarizeFiles, writeDatasetFolder } from '../parts/dataset-output.ts';
import { checkWorkers, runPartTasks } from '../parts/part-tasks.ts';
import { type RatingPart, ratingParts, type RatingPreset, scalePreset } from '../preset.ts';
import { anyShape, type ProblemSize } from '../any-shape.ts';
import { findPreset } from '../presets.ts';
import { RatingStatistics } from '../ratings/rating-statistics.ts';
import { buildRatingTables, checkSeed, type UserRange } from '../ratings/rating-tables.ts';
import { type DatasetDescription, describeDataset } from './dataset-description.ts';
import type { RangeRequest, RangeWorkerData } from './range-worker.ts';

/**
 * Least number of part files to aim for: smaller data sets get smaller files, so that threads share them
 * evenly.
 */
const WANTED_RANGES = 8;

/** Least number of requests per thread, if copies allow it. */
const REQUESTS_PER_WORKER = 4;

export interface GenerateDatasetOptions {
  /** A name from `presetNames`, a size in the shape of MovieLens-20M, or another preset. */
  readonly preset: string | ProblemSize | RatingPreset;
  /** Size relative to the preset (see `scalePreset`). Default 1. */
  readonly scale?: number;
  /** Default: one. */
  readonly copies?: Copies;
  /** An integer from 0 below 2^53. Default 0. */
  readonly seed?: number;
  /** Adds a column of times, `timestamp`, in seconds since 1970. Default false. */
  readonly timestamps?: boolean;
  readonly output: string;
  /** Replaces an existing data set. */
  readonly overwrite?: boolean;
  /** Number of threads; it does not affect the files. Default: one per core. */
  readonly workers?: number;
  /** Approximate rows of a part file, which determine the division into files (see `userRanges`). */
  readonly ratingsPerPart?: number;
  readonly signal?: AbortSignal;
  readonly onEvent?: EventSink;
}

export interface GeneratedDataset {
  readonly description: DatasetDescription;
  readonly files: Readonly<Record<RatingPart, WriteSummary>>;
  readonly seconds: number;
}

/**
 * Writes output/train/part-*.parquet, output/test/part-*.parquet {user: int32, item: int32, rating: float32}
 * and output/dataset.json in one pass over the ratings, one range of users per task. If copies push ids
 * beyond int32, they are int64. Memory holds one row group for each part and thread (with copies, the ratings
 * of a range) and arrays of users and items, for any number of ratings. The same options give the same bytes
 * for any number of workers. The folder appears completely or not at all.
 *
 * @throws UsageError for unknown presets, impossible scales, copies or seeds, or output that must not be
 * replaced; CancelledError.
 */
export async function generateDataset(options: GenerateDatasetOptions): Promise<GeneratedDataset> {
  const {
    scale = 1,
    output,
    overwrite,
    signal,
    onEvent = noEvents,
    ratingsPerPart = RATINGS_PER_PART,
  } = options;
  const base = presetOf(options.preset);
  const shape = scalePreset(base, scale);
  const seed = checkSeed(options.seed ?? 0);
  const copies = checkCopies(options.copies ?? oneCopy);
  const workers = checkWorkers(options.workers);
  const layout = layoutOf(shape, copies);
  requireMemory(shape, workers);
  const requests = planRanges(shape, copies, workers, ratingsPerPart);
  throwIfAborted(signal, 'generate');
  const started = performance.now();
  const rows = (shape.train + shape.test) * copies.users * copies.items;
  const { description, files } = await writeDatasetFolder(
    { output, overwrite, parts: ratingParts },
    async (folder) => {
      onEvent({ type: 'phase-start', phase: 'generate', total: rows, unit: 'ratings' });
      const tables = buildRatingTables(shape, seed);
      const workerData: RangeWorkerData = { folder, tables, layout, timestamps: options.timestamps ?? false };
      const worker = workerFile(new URL('./range-worker.js', import.meta.url));
      const outcomes = await runPartTasks<RangeRequest>({
        worker,
        workerData: { ...workerData },
        requests,
        workers,
        rows,
        signal,
        onEvent,
      });
      const statistics = new RatingStatistics(shape);
      for (const { partitions } of outcomes) if (partitions) statistics.add(partitions.statistics);
      return {
        description: describeDataset(tables, scale, copies, statistics),
        files: summarizeFiles(outcomes, output, ratingParts),
      };
    },
  );
  const seconds = (performance.now() - started) / 1000;
  onEvent({ type: 'phase-end', phase: 'generate', seconds, done: rows, unit: 'ratings' });
  return { description, files: { train: files.train, test: files.test }, seconds };
}

/**
 * Bytes of the tables per user, per item in the tables that threads share, and per item in each thread's
 * tables.
 */
const TABLE_BYTES = { user: 16, item: 112, itemOfThread: 28 } as const;

/** Throws CapacityError if the tables of users and items exceed the machine's memory. */
function requireMemory({ users, items }: RatingPreset, workers: number): void {
  const need = users * TABLE_BYTES.user + items * (TABLE_BYTES.item + workers * TABLE_BYTES.itemOfThread);
  if (need <= totalmem()) return;
  throw new CapacityError(
    `the tables of ${formatCount(users)} users and ${formatCount(items)} items take ${formatBytes(need)}, and this machine has ${formatBytes(totalmem())}`,
    { phase: 'generate', advice: 'Use fewer workers, or make a smaller data set and copies of it' },
  );
}

function layoutOf({ users, items }: RatingPreset, copies: Copies): CopyLayout {
  return {
    user: copiedIds('user', { smallest: 0, largest: users - 1 }, copies.users),
    item: copiedIds('item', { smallest: 0, largest: items - 1 }, copies.items),
  };
}

/**
 * One request for each range of users. If there are few ranges and many copies, several requests per range,
 * each of which generates the ratings again. A file's number depends on its group of copies and its range,
 * not on the requests.
 */
function planRanges(
  shape: RatingPreset,
  copies: Copies,
  workers: number,
  ratingsPerPart: number,
): RangeRequest[] {
  const ranges = userRanges(shape, ratingsPerPart);
  const groups = copyGroups(copies, (shape.train + shape.test) / ranges.length, ratingsPerPart);
  const requestsPerRange = Math.min(
    groups.length,
    Math.ceil((REQUESTS_PER_WORKER * workers) / ranges.length),
  );
  return ranges.flatMap((users, range) => {
    const numbered = groups.map((group, index) => ({ ...group, number: index * ranges.length + range }));
    return Array.from({ length: requestsPerRange }, (_, k) => {
      const share = (at: number) => Math.floor((groups.length * at) / requestsPerRange);
      return { users, groups: numbered.slice(share(k), share(k + 1)), counted: k === 0 };
    });
  });
}

/**
 * Divides the users into ranges of equal length with about `ratingsPerPart` ratings each: the work of one
 * task, and the contents of a part file. Medium-sized data sets are divided up to four times finer. The
 * division depends neither on the seed nor on the threads.
 */
export function userRanges(
  { users, train, test }: RatingPreset,
  ratingsPerPart: number = RATINGS_PER_PART,
): UserRange[] {
  const ratings = train + test;
  const wanted = Math.max(
    Math.ceil(ratings / ratingsPerPart),
    Math.min(WANTED_RANGES, Math.ceil((4 * ratings) / ratingsPerPart)),
  );
  const ranges = Math.min(users, wanted);
  return Array.from({ length: ranges }, (_, range) => ({
    first: Math.floor((users * range) / ranges),
    end: Math.floor((users * (range + 1)) / ranges),
  }));
}

function presetOf(given: GenerateDatasetOptions['preset']): RatingPreset {
  if (typeof given === 'string') return findPreset(given);
  return 'name' in given ? given : anyShape(given);
}
