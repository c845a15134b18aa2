/** The entry of a worker thread that generates ranges of users and writes their part files. */
import type { TaskOutcome } from '../../engine/task.ts';
import type { CopyGroup, CopyLayout } from '../copies/copies.ts';
import { copiedSchema, copyStream, type ReplayableBatches } from '../copies/copy-batch.ts';
import { addFiles, type FolderBatch, type PartSummary, writePartFiles } from '../parts/part-files.ts';
import { ownWorkerData, partWorker } from '../parts/part-worker.ts';
import { ratingParts } from '../preset.ts';
import { ratingSchema, timedSchema } from '../ratings/rating-batch.ts';
import { generateRatings } from '../ratings/rating-generator.ts';
import { RatingStatistics } from '../ratings/rating-statistics.ts';
import type { RatingTables, UserRange } from '../ratings/rating-tables.ts';

export interface RangeWorkerData {
  readonly folder: string;
  readonly tables: RatingTables;
  readonly layout: CopyLayout;
  readonly timestamps: boolean;
}

/** One range of users with some of its copies. */
export interface RangeRequest {
  readonly users: UserRange;
  /** Groups of copies, each with one file in each part. */
  readonly groups: readonly (CopyGroup & { readonly number: number })[];
  /** True for the one request of a range that counts its ratings. */
  readonly counted: boolean;
}

const { folder, tables, layout, timestamps } = ownWorkerData<RangeWorkerData>();
const schema = copiedSchema(timestamps ? timedSchema : ratingSchema, layout);

export default partWorker<RangeRequest>(async ({ users, groups, counted }, stop): Promise<TaskOutcome> => {
  const statistics = counted ? new RatingStatistics(tables.preset) : undefined;
  const once = groups.length === 1 && groups[0].end - groups[0].first === 1;
  const source = once ? () => generated(users, statistics) : remembered(generated(users, statistics));
  let parts: Readonly<Record<string, PartSummary>> = {};
  for (const group of groups) {
    const files = await writePartFiles(copyStream(source, schema, layout, group), {
      folder,
      parts: ratingParts,
      number: group.number,
      schema,
      stop,
    });
    if (files === undefined) break;
    parts = addFiles(parts, files);
  }
  const rows = ratingParts.reduce((sum, part) => sum + (parts[part]?.rows ?? 0), 0);
  return { rows, values: { parts }, partitions: statistics && { statistics: statistics.toPartition() } };
});

async function* generated(
  users: UserRange,
  statistics: RatingStatistics | undefined,
): AsyncGenerator<FolderBatch> {
  yield* generateRatings(tables, { users, statistics, timestamps });
}

/** Caches the batches for the next copy; a range has few. */
function remembered(batches: AsyncIterable<FolderBatch>): ReplayableBatches {
  const kept: FolderBatch[] = [];
  let complete = false;
  return async function* () {
    if (complete) return yield* kept;
    for await (const batch of batches) {
      kept.push(batch);
      yield batch;
    }
    complete = true;
  };
}
