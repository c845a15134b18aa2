import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Schema, Table, tableToIPC } from 'apache-arrow';
import type { WriteSummary } from '../../connectors/output/checked-sink.ts';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import { throwIfAborted } from '../../engine/errors.ts';
import { type EventSink, noEvents } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import { readRegular } from '../../engine/regular-file.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import {
  GENERATOR_VERSION,
  RATINGS_PER_PART,
  summarizeFiles,
  writeDatasetFolder,
} from '../parts/dataset-output.ts';
import { checkWorkers, runPartTasks } from '../parts/part-tasks.ts';
import { ratingParts } from '../preset.ts';
import { checkCopies, copiedIds, type Copies, copyGroups, type CopyLayout } from './copies.ts';
import { checkIdColumn } from './copy-batch.ts';
import type { CopyRequest, CopyWorkerData } from './copy-worker.ts';
import { idRange } from './id-range.ts';
import { rowGroupChunks } from './row-group-chunks.ts';

export interface CopyDatasetOptions {
  /** A Parquet file, a folder of part files, or a folder with train/ and test/, which stay separate. */
  readonly from: string;
  readonly copies: Copies;
  readonly output: string;
  /** Column of int32 or int64 ids. Default "user"; "item" for `itemColumn`. */
  readonly userColumn?: string;
  readonly itemColumn?: string;
  readonly overwrite?: boolean;
  /** Number of threads; it does not affect the files. Default: one per core. */
  readonly workers?: number;
  /** Approximate rows of a part file: the source's row groups and their copies are not divided. */
  readonly ratingsPerPart?: number;
  readonly signal?: AbortSignal;
  readonly onEvent?: EventSink;
}

/** The contents of dataset.json for copies. */
export interface CopiesDescription {
  readonly generator: number;
  readonly copies: readonly [number, number];
  /** Distance between the ids of one copy and the next; likewise `itemSpan`. */
  readonly userSpan: number;
  readonly itemSpan: number;
  readonly ratings: number;
  /** The source's value, if its dataset.json has it. */
  readonly bestTestRmse?: number;
  /** The source's dataset.json. */
  readonly of?: JsonObject;
}

export interface CopiedDataset {
  readonly description: CopiesDescription;
  /** Files by part: "train" and "test", or only "". */
  readonly files: Readonly<Record<string, WriteSummary>>;
  readonly seconds: number;
}

/**
 * Writes the copies of an existing data set with all its columns; only the ids change. Each thread holds one
 * row group to read and one to write in memory. The same source and copies give the same bytes for any number
 * of workers. The folder appears completely or not at all.
 *
 * @throws DataError for ids that are neither int32 nor int64, or null; UsageError for impossible copies or
 * output; CancelledError.
 */
export async function copyDataset(options: CopyDatasetOptions): Promise<CopiedDataset> {
  const {
    from,
    output,
    overwrite,
    userColumn = 'user',
    itemColumn = 'item',
    onEvent = noEvents,
    ratingsPerPart = RATINGS_PER_PART,
  } = options;
  const copies = checkCopies(options.copies);
  const workers = checkWorkers(options.workers);
  const signal = options.signal ?? new AbortController().signal;
  throwIfAborted(signal, 'generate');
  const started = performance.now();
  const parts = await partsOf(from);
  const sources = new Map(
    parts.map((part) => [part, new ParquetSource(part === '' ? from : join(from, part))]),
  );
  const schemas: Record<string, Uint8Array> = {};
  for (const [part, source] of sources)
    schemas[part] = checked(await source.schema(), [userColumn, itemColumn]);
  const layout: CopyLayout = {
    user: copiedIds(userColumn, await idRange([...sources.values()], userColumn, signal), copies.users),
    item: copiedIds(itemColumn, await idRange([...sources.values()], itemColumn, signal), copies.items),
  };
  const requests = await planCopies(sources, copies, ratingsPerPart);
  const rows = requests.reduce(
    (sum, { sourceRows, group }) => sum + sourceRows * (group.end - group.first),
    0,
  );
  const { description, files } = await writeDatasetFolder({ output, overwrite, parts }, async (folder) => {
    onEvent({ type: 'phase-start', phase: 'generate', total: rows, unit: 'ratings' });
    const workerData: CopyWorkerData = { folder, layout, schemas };
    const worker = workerFile(new URL('./copy-worker.js', import.meta.url));
    const outcomes = await runPartTasks<CopyRequest>({
      worker,
      workerData: { ...workerData },
      requests,
      workers,
      rows,
      signal,
      onEvent,
    });
    return {
      description: await describe(from, copies, layout, rows),
      files: summarizeFiles(outcomes, output, parts),
    };
  });
  const seconds = (performance.now() - started) / 1000;
  onEvent({ type: 'phase-end', phase: 'generate', seconds, done: rows, unit: 'ratings' });
  return { description, files, seconds };
}

/** The schema as bytes for other threads. @throws DataError for id columns that cannot be copied. */
function checked(schema: Schema, ids: readonly string[]): Uint8Array {
  for (const column of ids) checkIdColumn(schema, column);
  return tableToIPC(new Table(schema), 'stream');
}

async function partsOf(from: string): Promise<readonly string[]> {
  const isFolder = (path: string) =>
    stat(path).then(
      (found) => found.isDirectory(),
      () => false,
    );
  const both = (await isFolder(join(from, 'train'))) && (await isFolder(join(from, 'test')));
  return both ? ratingParts : [''];
}

/** The requests by part, chunk of row groups and group of copies, numbered in this order. */
async function planCopies(
  sources: ReadonlyMap<string, ParquetSource>,
  copies: Copies,
  ratingsPerPart: number,
): Promise<(CopyRequest & { readonly sourceRows: number })[]> {
  const requests: (CopyRequest & { readonly sourceRows: number })[] = [];
  for (const [part, source] of sources) {
    let number = 0;
    for (const { request, rows } of await rowGroupChunks(source, ratingsPerPart)) {
      for (const group of copyGroups(copies, rows, ratingsPerPart))
        requests.push({ part, rows: request, group, number: number++, sourceRows: rows });
    }
  }
  return requests;
}

/** Most bytes of a data set's description. */
const MOST_BYTES = 1 << 24;

/** The description of the source data set; undefined if it has none. */
function describedBy(file: string): JsonObject | undefined {
  try {
    return JSON.parse(Buffer.from(readRegular(file, MOST_BYTES)).toString()) as JsonObject;
  } catch {
    return undefined;
  }
}

async function describe(
  from: string,
  { users, items }: Copies,
  { user, item }: CopyLayout,
  ratings: number,
): Promise<CopiesDescription> {
  const of = describedBy(join(from, 'dataset.json'));
  const best = of?.bestTestRmse;
  return {
    generator: GENERATOR_VERSION,
    copies: [users, items],
    userSpan: user.span,
    itemSpan: item.span,
    ratings,
    ...(typeof best === 'number' && { bestTestRmse: best }),
    ...(of !== undefined && { of }),
  };
}
