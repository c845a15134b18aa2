import { type Schema, Table, tableToIPC } from 'apache-arrow';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ParquetFileInfo } from '../../connectors/parquet/backend.ts';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import type { RowGroupRequest } from '../../connectors/parquet/parquet-source.ts';
import { DataError, throwIfAborted } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { readRegular } from '../../engine/regular-file.ts';
import type { PartRequest } from '../dataset/part-worker.ts';
import {
  type DatasetOptions,
  GENERATOR_VERSION,
  RATINGS_PER_PART,
  writeDataset,
  type WrittenDataset,
} from '../dataset/write-dataset.ts';
import { ratingParts } from '../preset.ts';
import { checkCopies, copiedIds, type Copies, copyGroups } from './copies.ts';
import { checkIdColumn } from './copy-batch.ts';

interface CopyDatasetOptions extends DatasetOptions {
  /** A Parquet file, a folder of part files, or a folder with train/ and test/, which stay separate. */
  readonly from: string;
  readonly copies: Copies;
  /** Column of int32 or int64 ids. Default "user"; "item" for `itemColumn`. */
  readonly userColumn?: string;
  readonly itemColumn?: string;
  /** Approximate rows of a part file: the source's row groups and their copies are not divided. */
  readonly ratingsPerPart?: number;
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

/**
 * Writes the copies of an existing data set with all its columns; only the ids change. Each thread holds one
 * row group to read and one to write in memory. The same source and copies give the same bytes for any number
 * of workers. The folder appears completely or not at all.
 *
 * @throws DataError for ids that are neither int32 nor int64, or null; UsageError for impossible copies or
 * output; CancelledError.
 */
export async function copyDataset(
  options: CopyDatasetOptions,
): Promise<WrittenDataset<string, CopiesDescription>> {
  const { from, userColumn = 'user', itemColumn = 'item', ratingsPerPart = RATINGS_PER_PART } = options;
  const copies = checkCopies(options.copies);
  const signal = options.signal ?? new AbortController().signal;
  throwIfAborted(signal, 'generate');
  const parts = await partsOf(from);
  const sources = new Map(
    parts.map((part) => [part, new ParquetSource(part === '' ? from : join(from, part))]),
  );
  const schemas: Record<string, Uint8Array> = {};
  for (const [part, source] of sources)
    schemas[part] = checked(await source.schema(), [userColumn, itemColumn]);
  const layout = {
    user: copiedIds(userColumn, await idRange([...sources.values()], userColumn, signal), copies.users),
    item: copiedIds(itemColumn, await idRange([...sources.values()], itemColumn, signal), copies.items),
  };
  const { requests, rows } = await planCopies(sources, copies, ratingsPerPart);
  return writeDataset({ ...options, parts, rows }, async (run) => {
    await run({ layout, source: { schemas } }, requests);
    const of = describedBy(join(from, 'dataset.json'));
    const best = of?.bestTestRmse;
    return {
      generator: GENERATOR_VERSION,
      copies: [copies.users, copies.items],
      userSpan: layout.user.span,
      itemSpan: layout.item.span,
      ratings: rows,
      ...(typeof best === 'number' && { bestTestRmse: best }),
      ...(of !== undefined && { of }),
    };
  });
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

/** The requests by part, chunk of row groups and group of copies, and the rows of all. */
async function planCopies(
  sources: ReadonlyMap<string, ParquetSource>,
  copies: Copies,
  ratingsPerPart: number,
): Promise<{ readonly requests: readonly PartRequest[]; readonly rows: number }> {
  const requests: PartRequest[] = [];
  let all = 0;
  for (const [part, source] of sources) {
    let number = 0;
    for (const { request, rows } of await rowGroupChunks(source, ratingsPerPart)) {
      all += rows * copies.users * copies.items;
      for (const group of copyGroups(copies, rows, ratingsPerPart))
        requests.push({ rows: { part, rowGroups: request }, groups: [{ ...group, number: number++ }] });
    }
  }
  return { requests, rows: all };
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
