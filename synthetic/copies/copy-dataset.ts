import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Schema, Table, tableToIPC } from 'apache-arrow';
import type { WriteSummary } from '../../connectors/output/checked-sink.ts';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import { throwIfAborted } from '../../engine/errors.ts';
import { type EventSink, noEvents } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import { workerFile } from '../../engine/worker-file.ts';
import { GENERATOR_VERSION, RATINGS_PER_PART, summarizeFiles, writeDatasetFolder } from '../parts/dataset-output.ts';
import { checkWorkers, runPartTasks } from '../parts/part-tasks.ts';
import { ratingParts } from '../preset.ts';
import { checkCopies, copiedIds, type Copies, copyGroups, type CopyLayout } from './copies.ts';
import { checkIdColumn } from './copy-batch.ts';
import type { CopyRequest, CopyWorkerData } from './copy-worker.ts';
import { idRange } from './id-range.ts';
import { rowGroupChunks } from './row-group-chunks.ts';

export interface CopyDatasetOptions {
  /** A Parquet file, a folder of part files, or a folder with train/ and test/ whose parts stay apart. */
  readonly from: string;
  readonly copies: Copies;
  readonly output: string;
  /** Columns of int32 or int64 ids; "user" and "item" when left out. */
  readonly userColumn?: string;
  readonly itemColumn?: string;
  readonly overwrite?: boolean;
  /** Threads; one a core when left out. The files do not depend on it. */
  readonly workers?: number;
  /** Rows of a part file, about: the source's row groups and their copies stay whole. */
  readonly ratingsPerPart?: number;
  readonly signal?: AbortSignal;
  readonly onEvent?: EventSink;
}

/** dataset.json of copies. */
export interface CopiesDescription {
  readonly generator: number;
  readonly copies: readonly [number, number];
  /** What one copy adds to the ids. */
  readonly userSpan: number;
  readonly itemSpan: number;
  readonly ratings: number;
  /** The same as the source's, if its dataset.json tells. */
  readonly bestTestRmse?: number;
  /** The source's dataset.json. */
  readonly of?: JsonObject;
}

export interface CopiedDataset {
  readonly description: CopiesDescription;
  /** "train" and "test", or "" alone. */
  readonly files: Readonly<Record<string, WriteSummary>>;
  readonly seconds: number;
}

/**
 * Writes the copies of an existing data set: all its columns, only the ids changed. Streaming: memory holds what a row group takes to read
 * and to write, a thread each. The same source and copies give the same bytes for any number of workers. The folder appears whole or
 * not at all.
 *
 * @throws DataError for ids that are neither int32 nor int64, or missing; UsageError for impossible copies or output; CancelledError.
 */
export async function copyDataset(options: CopyDatasetOptions): Promise<CopiedDataset> {
  const { from, output, overwrite, userColumn = 'user', itemColumn = 'item', onEvent = noEvents, ratingsPerPart = RATINGS_PER_PART } = options;
  const copies = checkCopies(options.copies);
  const workers = checkWorkers(options.workers);
  const signal = options.signal ?? new AbortController().signal;
  throwIfAborted(signal, 'generate');
  const started = performance.now();
  const parts = await partsOf(from);
  const sources = new Map(parts.map((part) => [part, new ParquetSource(part === '' ? from : join(from, part))]));
  const schemas: Record<string, Uint8Array> = {};
  for (const [part, source] of sources) schemas[part] = checked(await source.schema(), [userColumn, itemColumn]);
  const layout: CopyLayout = {
    user: copiedIds(userColumn, await idRange([...sources.values()], userColumn, signal), copies.users),
    item: copiedIds(itemColumn, await idRange([...sources.values()], itemColumn, signal), copies.items),
  };
  const requests = await planCopies(sources, copies, ratingsPerPart);
  const rows = requests.reduce((sum, { sourceRows, group }) => sum + sourceRows * (group.end - group.first), 0);
  const { description, files } = await writeDatasetFolder({ output, overwrite, parts }, async (folder) => {
    onEvent({ type: 'phase-start', phase: 'generate', total: rows, unit: 'ratings' });
    const workerData: CopyWorkerData = { folder, layout, schemas };
    const worker = workerFile(import.meta.url, './copy-worker');
    const outcomes = await runPartTasks<CopyRequest>({ worker, workerData: { ...workerData }, requests, workers, rows, signal, onEvent });
    return { description: await describe(from, copies, layout, rows), files: summarizeFiles(outcomes, output, parts) };
  });
  const seconds = (performance.now() - started) / 1000;
  onEvent({ type: 'phase-end', phase: 'generate', seconds, done: rows, unit: 'ratings' });
  return { description, files, seconds };
}

/** As bytes, which can go to other threads. */
function checked(schema: Schema, ids: readonly string[]): Uint8Array {
  for (const column of ids) checkIdColumn(schema, column);
  return tableToIPC(new Table(schema), 'stream');
}

async function partsOf(from: string): Promise<readonly string[]> {
  const isFolder = (path: string) => stat(path).then((found) => found.isDirectory(), () => false);
  const both = (await isFolder(join(from, 'train'))) && (await isFolder(join(from, 'test')));
  return both ? ratingParts : [''];
}

/** Part by part, chunk by chunk of row groups, group by group of copies, numbered in this order. */
async function planCopies(sources: ReadonlyMap<string, ParquetSource>, copies: Copies, ratingsPerPart: number): Promise<(CopyRequest & { readonly sourceRows: number })[]> {
  const requests: (CopyRequest & { readonly sourceRows: number })[] = [];
  for (const [part, source] of sources) {
    let number = 0;
    for (const { request, rows } of await rowGroupChunks(source, ratingsPerPart)) {
      for (const group of copyGroups(copies, rows, ratingsPerPart)) requests.push({ part, rows: request, group, number: number++, sourceRows: rows });
    }
  }
  return requests;
}

async function describe(from: string, { users, items }: Copies, { user, item }: CopyLayout, ratings: number): Promise<CopiesDescription> {
  const of = await readFile(join(from, 'dataset.json'), 'utf8').then(
    (text) => JSON.parse(text) as JsonObject,
    () => undefined,
  );
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
