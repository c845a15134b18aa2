import { totalmem } from 'node:os';
import { CapacityError } from '../../engine/errors.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import { anyShape, type ProblemSize } from '../any-shape.ts';
import { checkCopies, copiedIds, type Copies, copyGroups, oneCopy } from '../copies/copies.ts';
import { ratingParts, type RatingPart, type RatingPreset, scalePreset } from '../preset.ts';
import { findPreset } from '../presets.ts';
import { RatingStatistics } from '../ratings/rating-statistics.ts';
import { buildRatingTables, checkSeed, type UserRange } from '../ratings/rating-tables.ts';
import { type DatasetDescription, describeDataset } from './dataset-description.ts';
import type { PartRequest } from './part-worker.ts';
import {
  checkWorkers,
  type DatasetOptions,
  RATINGS_PER_PART,
  writeDataset,
  type WrittenDataset,
} from './write-dataset.ts';

/**
 * Least number of part files to aim for: smaller data sets get smaller files, so that threads share them
 * evenly.
 */
const WANTED_RANGES = 8;

/** Least number of requests per thread, if copies allow it. */
const REQUESTS_PER_WORKER = 4;

export interface GenerateDatasetOptions extends DatasetOptions {
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
  /** Approximate rows of a part file, which determine the division into files (see `userRanges`). */
  readonly ratingsPerPart?: number;
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
export async function generateDataset(
  options: GenerateDatasetOptions,
): Promise<WrittenDataset<RatingPart, DatasetDescription>> {
  const { preset, scale = 1, timestamps = false, ratingsPerPart = RATINGS_PER_PART } = options;
  const shape = scalePreset(presetOf(preset), scale);
  const seed = checkSeed(options.seed ?? 0);
  const copies = checkCopies(options.copies ?? oneCopy);
  const workers = checkWorkers(options.workers);
  const layout = {
    user: copiedIds('user', { smallest: 0, largest: shape.users - 1 }, copies.users),
    item: copiedIds('item', { smallest: 0, largest: shape.items - 1 }, copies.items),
  };
  requireMemory(shape, workers);
  const requests = planRanges(shape, copies, workers, ratingsPerPart);
  const rows = (shape.train + shape.test) * copies.users * copies.items;
  return writeDataset({ ...options, parts: ratingParts, rows }, async (run) => {
    const tables = buildRatingTables(shape, seed);
    const outcomes = await run({ layout, source: { tables, timestamps } }, requests);
    const statistics = new RatingStatistics(shape);
    for (const { partitions } of outcomes) if (partitions) statistics.add(partitions.statistics);
    return describeDataset(tables, scale, copies, statistics);
  });
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
): PartRequest[] {
  const ranges = userRanges(shape, ratingsPerPart);
  const groups = copyGroups(copies, (shape.train + shape.test) / ranges.length, ratingsPerPart);
  const requestsPerRange = Math.min(
    groups.length,
    Math.ceil((REQUESTS_PER_WORKER * workers) / ranges.length),
  );
  return ranges.flatMap((rows, range) => {
    const numbered = groups.map((group, index) => ({ ...group, number: index * ranges.length + range }));
    return Array.from({ length: requestsPerRange }, (_, k) => {
      const share = (at: number) => Math.floor((groups.length * at) / requestsPerRange);
      return { rows, groups: numbered.slice(share(k), share(k + 1)), counted: k === 0 };
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
