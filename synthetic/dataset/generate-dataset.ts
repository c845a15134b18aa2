import type { WriteSummary } from '../../connectors/output/checked-sink.ts';
import { throwIfAborted } from '../../engine/errors.ts';
import { type EventSink, noEvents } from '../../engine/events.ts';
import { workerFile } from '../../engine/worker-file.ts';
import { checkCopies, copiedIds, type Copies, copyGroups, type CopyLayout, oneCopy } from '../copies/copies.ts';
import { RATINGS_PER_PART, summarizeFiles, writeDatasetFolder } from '../parts/dataset-output.ts';
import { checkWorkers, runPartTasks } from '../parts/part-tasks.ts';
import { type RatingPart, ratingParts, type RatingPreset, scalePreset } from '../preset.ts';
import { findPreset } from '../presets.ts';
import { RatingStatistics } from '../ratings/rating-statistics.ts';
import { buildRatingTables, checkSeed, type UserRange } from '../ratings/rating-tables.ts';
import { type DatasetDescription, describeDataset } from './dataset-description.ts';
import type { RangeRequest, RangeWorkerData } from './range-worker.ts';

/** Data sets of fewer than this many part files get smaller ones, so that threads share them evenly. */
const WANTED_RANGES = 8;

/** Requests a thread should get at least, where copies allow it. */
const REQUESTS_PER_WORKER = 4;

export interface GenerateDatasetOptions {
  /** A name from `presetNames`, or a preset of one's own. */
  readonly preset: string | RatingPreset;
  /** See `scalePreset`; 1 when left out. */
  readonly scale?: number;
  /** See `Copies`; one when left out. */
  readonly copies?: Copies;
  /** An integer from 0 below 2^53; 0 when left out. */
  readonly seed?: number;
  readonly output: string;
  /** Replace a data set that is there already. */
  readonly overwrite?: boolean;
  /** Threads; one a core when left out. The files do not depend on it. */
  readonly workers?: number;
  /** Rows of a part file, about; see `userRanges`. The files' cut depends on it. */
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
 * Writes output/train/part-*.parquet, output/test/part-*.parquet {user: int32, item: int32, rating: float32} and output/dataset.json in
 * one pass over the ratings, a range of users a task; int64 for ids that copies push beyond int32. Memory holds one row group a part and
 * thread (with copies, a range's ratings) and arrays of users and items, whatever the number of ratings. The same options give the
 * same bytes for any number of workers. The folder appears whole or not at all.
 *
 * @throws UsageError for unknown presets, impossible scales, copies or seeds, or output that may not be replaced; CancelledError.
 */
export async function generateDataset(options: GenerateDatasetOptions): Promise<GeneratedDataset> {
  const { scale = 1, output, overwrite, signal, onEvent = noEvents, ratingsPerPart = RATINGS_PER_PART } = options;
  const base = typeof options.preset === 'string' ? findPreset(options.preset) : options.preset;
  const shape = scalePreset(base, scale);
  const seed = checkSeed(options.seed ?? 0);
  const copies = checkCopies(options.copies ?? oneCopy);
  const workers = checkWorkers(options.workers);
  const layout = layoutOf(shape, copies);
  const requests = planRanges(shape, copies, workers, ratingsPerPart);
  throwIfAborted(signal, 'generate');
  const started = performance.now();
  const rows = (shape.train + shape.test) * copies.users * copies.items;
  const { description, files } = await writeDatasetFolder({ output, overwrite, parts: ratingParts }, async (folder) => {
    onEvent({ type: 'phase-start', phase: 'generate', total: rows, unit: 'ratings' });
    const tables = buildRatingTables(shape, seed);
    const workerData: RangeWorkerData = { folder, tables, layout };
    const worker = workerFile(import.meta.url, './range-worker');
    const outcomes = await runPartTasks<RangeRequest>({ worker, workerData: { ...workerData }, requests, workers, rows, signal, onEvent });
    const statistics = new RatingStatistics(shape);
    for (const { partitions } of outcomes) if (partitions) statistics.add(partitions.statistics);
    return { description: describeDataset(tables, scale, copies, statistics), files: summarizeFiles(outcomes, output, ratingParts) };
  });
  const seconds = (performance.now() - started) / 1000;
  onEvent({ type: 'phase-end', phase: 'generate', seconds, done: rows, unit: 'ratings' });
  return { description, files: { train: files.train, test: files.test }, seconds };
}

function layoutOf({ users, items }: RatingPreset, copies: Copies): CopyLayout {
  return {
    user: copiedIds('user', { smallest: 0, largest: users - 1 }, copies.users),
    item: copiedIds('item', { smallest: 0, largest: items - 1 }, copies.items),
  };
}

/**
 * One request a range, and several for a range with many copies when there are too few ranges for the threads: each makes the ratings
 * anew. Files are numbered by group of copies and range, however the groups are dealt out.
 */
function planRanges(shape: RatingPreset, copies: Copies, workers: number, ratingsPerPart: number): RangeRequest[] {
  const ranges = userRanges(shape, ratingsPerPart);
  const groups = copyGroups(copies, (shape.train + shape.test) / ranges.length, ratingsPerPart);
  const requestsPerRange = Math.min(groups.length, Math.ceil((REQUESTS_PER_WORKER * workers) / ranges.length));
  return ranges.flatMap((users, range) => {
    const numbered = groups.map((group, index) => ({ ...group, number: index * ranges.length + range }));
    return Array.from({ length: requestsPerRange }, (_, k) => {
      const share = (at: number) => Math.floor((groups.length * at) / requestsPerRange);
      return { users, groups: numbered.slice(share(k), share(k + 1)), counted: k === 0 };
    });
  });
}

/**
 * Cuts the users into ranges of equal length with about `ratingsPerPart` ratings each: what one thread makes at a time and what a part
 * file holds. Medium-sized data sets are cut up to four times finer. Neither seed nor threads have a say.
 */
export function userRanges({ users, train, test }: RatingPreset, ratingsPerPart: number = RATINGS_PER_PART): UserRange[] {
  const ratings = train + test;
  const wanted = Math.max(Math.ceil(ratings / ratingsPerPart), Math.min(WANTED_RANGES, Math.ceil((4 * ratings) / ratingsPerPart)));
  const ranges = Math.min(users, wanted);
  return Array.from({ length: ranges }, (_, range) => ({ first: Math.floor((users * range) / ranges), end: Math.floor((users * (range + 1)) / ranges) }));
}
