import { type Schema, Table, tableToIPC } from 'apache-arrow';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { WriteSummary } from '../../connectors/output/checked-sink.ts';
import type { ParquetFileInfo } from '../../connectors/parquet/backend.ts';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import type { RowGroupRequest } from '../../connectors/parquet/parquet-source.ts';
import { DataError, throwIfAborted } from '../../engine/errors.ts';
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

interface CopyDatasetOptions {
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
interface CopiesDescription {
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

interface CopiedDataset {
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

interface IdRange {
  readonly smallest: number;
  readonly largest: number;
}

const nothing: IdRange = { smallest: Infinity, largest: -Infinity };

/**
 * Smallest and largest id of an int32 or int64 column over all sources: from their footers, or from the
 * column itself if footers lack statistics. Above 2^53 they are rounded.
 *
 * @throws DataError if there are no rows.
 */
async function idRange(
  sources: readonly ParquetSource[],
  column: string,
  signal: AbortSignal,
): Promise<IdRange> {
  let range = nothing;
  for (const source of sources)
    range = union(
      range,
      rangeInFooters(await source.files(), column) ?? (await rangeInRows(source, column, signal)),
    );
  if (range.smallest <= range.largest) return range;
  throw new DataError('there are no ratings to copy', { phase: 'generate', column });
}

function union(a: IdRange, b: IdRange): IdRange {
  return { smallest: Math.min(a.smallest, b.smallest), largest: Math.max(a.largest, b.largest) };
}

function rangeInFooters(files: readonly ParquetFileInfo[], column: string): IdRange | undefined {
  let range = nothing;
  for (const { rowGroups } of files) {
    for (const { rows, columns } of rowGroups) {
      const { min, max } = columns.find((chunk) => chunk.column === column)?.statistics ?? {};
      if (rows === 0) continue;
      if (min === undefined || max === undefined) return undefined;
      range = union(range, { smallest: Number(min), largest: Number(max) });
    }
  }
  return range;
}

async function rangeInRows(source: ParquetSource, column: string, signal: AbortSignal): Promise<IdRange> {
  let { smallest, largest } = nothing;
  for await (const batch of await source.execute({ signal }, [column])) {
    throwIfAborted(signal, 'generate');
    const values: Int32Array | BigInt64Array = batch.data.children[0].values;
    const wide = values instanceof BigInt64Array;
    const words = wide ? new Int32Array(values.buffer, values.byteOffset, 2 * batch.numRows) : values;
    for (let row = 0; row < batch.numRows; row++) {
      const id = wide ? words[2 * row + 1] * 2 ** 32 + (words[2 * row] >>> 0) : words[row];
      if (id < smallest) smallest = id;
      if (id > largest) largest = id;
    }
  }
  return { smallest, largest };
}

/** Consecutive row groups of one file. */
interface RowGroupChunk {
  readonly request: RowGroupRequest;
  readonly rows: number;
}

/**
 * All row groups of the source in order, in chunks of one row group or of at most `rowsPerChunk` rows; one
 * empty chunk when there are no rows.
 */
async function rowGroupChunks(source: ParquetSource, rowsPerChunk: number): Promise<RowGroupChunk[]> {
  const infos = new Map((await source.files()).map((info) => [info.file, info]));
  const chunks = (await source.requests()).flatMap((request) => {
    const { file, rowGroups = [] } = request;
    const rowsOf = (group: number) => infos.get(file)?.rowGroups[group].rows ?? 0;
    const cut: { groups: number[]; rows: number }[] = [];
    for (const group of rowGroups) {
      const last = cut.at(-1);
      if (last === undefined || last.rows + rowsOf(group) > rowsPerChunk)
        cut.push({ groups: [group], rows: rowsOf(group) });
      else {
        last.groups.push(group);
        last.rows += rowsOf(group);
      }
    }
    return cut.map(({ groups, rows }) => ({ request: { ...request, rowGroups: groups }, rows }));
  });
  const [first] = infos.keys();
  return chunks.length > 0 ? chunks : [{ request: { file: first, rowGroups: [] }, rows: 0 }];
}
