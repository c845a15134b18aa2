/** The entry of a worker thread that writes part files: of generated ratings, or of rows of other files. */
import { join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { type RecordBatch, type Schema, tableFromIPC } from 'apache-arrow';
import type { ParquetFileWriter } from '../../connectors/parquet/backend.ts';
import { parquetBackend } from '../../connectors/parquet/backends.ts';
import { readRowGroups, type RowGroupRequest } from '../../connectors/parquet/parquet-source.ts';
import { partName } from '../../connectors/parquet/part-names.ts';
import { serializeError } from '../../engine/errors.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { sharedClock } from '../../engine/threads/shared-clock.ts';
import type { WorkerReply } from '../../engine/threads/thread-pool.ts';
import type { CopyGroup, CopyLayout } from '../copies/copies.ts';
import { copiedSchema, copyBatch } from '../copies/copy-batch.ts';
import { ratingParts } from '../preset.ts';
import { ratingSchema, timedSchema } from '../ratings/rating-batch.ts';
import { generateRatings } from '../ratings/rating-generator.ts';
import { RatingStatistics } from '../ratings/rating-statistics.ts';
import type { RatingTables, UserRange } from '../ratings/rating-tables.ts';

/** What all requests of a data set share. */
export interface PartWork {
  readonly layout: CopyLayout;
  /** The tables of generated ratings; or the schemas of existing parts, as Arrow IPC streams without rows. */
  readonly source:
    | { readonly tables: RatingTables; readonly timestamps: boolean }
    | { readonly schemas: Readonly<Record<string, Uint8Array>> };
}

/** Rows of one source with some of their copies. */
export interface PartRequest {
  readonly rows: UserRange | { readonly part: string; readonly rowGroups: RowGroupRequest };
  /** Groups of copies; each is one file with this number in each part, with or without rows. */
  readonly groups: readonly (CopyGroup & { readonly number: number })[];
  /** True for the one request of a range of users that counts its ratings. */
  readonly counted?: boolean;
}

export interface PartWorkerData extends PartWork {
  /** The folder of the data set, with a folder for each part in it. */
  readonly folder: string;
  /** A single number: rows written by all threads so far. */
  readonly written: BigInt64Array;
}

/** A batch and its folder in the data set: "train", "test", or "" for the data set itself. */
interface FolderBatch {
  readonly part: string;
  readonly batch: RecordBatch;
}

/** Rows that can be read repeatedly, in the same order each time. */
interface PartRows {
  readonly parts: readonly string[];
  readonly schema: Schema;
  readonly batches: () => AsyncIterable<FolderBatch>;
}

const writeOptions = { codec: 'zstd', rowGroupSize: 1 << 20 } as const;

// Piscina passes [its own data, ours] if ports are used, and only ours otherwise.
const { folder, layout, source, written, flags } = (
  Array.isArray(workerData) ? workerData.at(-1) : workerData
) as PartWorkerData & { readonly flags: Int32Array };

export default async ({ slot, request }: { slot: number; request: PartRequest }): Promise<WorkerReply> => {
  const start = sharedClock();
  const stop = (rows: number) => {
    if (rows > 0) Atomics.add(written, 0, BigInt(rows));
    return Atomics.load(flags, slot) !== 0;
  };
  try {
    const outcome = await writeParts(request, stop);
    return { outcome, start, milliseconds: sharedClock() - start };
  } catch (error) {
    return { error: serializeError(error) };
  }
};

/** `stop` counts rows for the main thread before each batch, and returns true after a cancel. */
async function writeParts(request: PartRequest, stop: (rows: number) => boolean): Promise<TaskOutcome> {
  const statistics =
    request.counted && 'tables' in source ? new RatingStatistics(source.tables.preset) : undefined;
  const rows = rowsOf(request, statistics);
  const files = [];
  for (const group of request.groups) {
    const written = await writeFiles(rows, group, stop);
    if (written === undefined) break;
    files.push(...written);
  }
  return {
    rows: files.reduce((sum, file) => sum + file.rows, 0),
    values: { files },
    partitions: statistics && { statistics: statistics.toPartition() },
  };
}

function rowsOf({ rows, groups }: PartRequest, statistics: RatingStatistics | undefined): PartRows {
  if ('part' in rows && 'schemas' in source) {
    const { part, rowGroups } = rows;
    const schema: Schema = tableFromIPC(source.schemas[part]).schema;
    // Rows are read again for every copy: that is cheap compared with writing, and a row group may be too
    // large to keep.
    const batches = async function* () {
      for await (const batch of readRowGroups(rowGroups, schema)) yield { part, batch };
    };
    return { parts: [part], schema, batches };
  }
  if (!('first' in rows && 'tables' in source)) throw new Error('the request is for another source');
  const { tables, timestamps } = source;
  const generated = generateRatings(tables, { users: rows, statistics, timestamps });
  const isOnce = groups.length === 1 && groups[0].end - groups[0].first === 1;
  return {
    parts: ratingParts,
    schema: timestamps ? timedSchema : ratingSchema,
    batches: replayable(generated, !isOnce),
  };
}

/** Batches that can be read again where they are kept; a range of users has few. */
function replayable(batches: Iterable<FolderBatch>, keep: boolean): () => AsyncIterable<FolderBatch> {
  const kept: FolderBatch[] = [];
  let isComplete = false;
  return async function* () {
    if (isComplete) return yield* kept;
    for (const batch of batches) {
      if (keep) kept.push(batch);
      yield batch;
    }
    isComplete = true;
  };
}

/** The copies of a group in order, each in the order of the source. */
async function* copies(
  { batches }: PartRows,
  schema: Schema,
  { first, end }: CopyGroup,
): AsyncGenerator<FolderBatch> {
  for (let copy = first; copy < end; copy++) {
    for await (const { part, batch } of batches())
      yield { part, batch: copyBatch(batch, schema, layout, copy) };
  }
}

/**
 * Writes one part file into each part's folder. Returns undefined if it was stopped. After a stop or an error
 * the files are incomplete, and the owner of the folder removes them.
 */
async function writeFiles(
  source: PartRows,
  group: PartRequest['groups'][number],
  stop: (rows: number) => boolean,
) {
  const backend = await parquetBackend();
  const schema = copiedSchema(source.schema, layout);
  const open = new Map<string, ParquetFileWriter>();
  const files = [];
  let rows = 0;
  try {
    for (const part of source.parts)
      open.set(part, await backend.create(join(folder, part, partName(group.number)), schema, writeOptions));
    for await (const { part, batch } of copies(source, schema, group)) {
      if (stop(rows)) return undefined;
      await open.get(part)!.write(batch);
      rows = batch.numRows;
    }
    if (stop(rows)) return undefined;
    for (const [part, writer] of open) {
      files.push({ part, ...(await writer.close()) });
      open.delete(part);
    }
    return files;
  } finally {
    for (const writer of open.values()) await writer.abort();
  }
}
