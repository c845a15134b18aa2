import { type Data, type Field, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import { isNullAt } from '../../engine/keys/arrow-keys.ts';
import { RowNumbers } from '../../engine/keys/row-numbers.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import { joinData } from '../../engine/stream/join-data.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { takeData } from '../../engine/stream/take-data.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';
import { STANDARD_STREAM } from '../files/path-kinds.ts';
import { atomicOutput, type AtomicOutputOptions, checkOutput } from '../output/atomic-output.ts';
import type { CheckedSink, FilesOfFolders, WriteSummary, WritingContext } from '../output/checked-sink.ts';
import { causeOfFull } from '../output/new-file.ts';
import { piecesAtOnce } from '../output/row-encoder.ts';
import { type BatchOutput, writeBatches } from '../output/write-batches.ts';
import { dataBytes } from '../parquet/encode-row-groups.ts';
import { folderName, folderTexts } from './folder-names.ts';

export interface PartitionedOptions {
  /** Columns whose values name the folders, outermost first. */
  readonly columns: readonly string[];
  readonly overwrite?: boolean;
  /** Bytes of rows that may wait in memory. Default 128 MiB. */
  readonly bufferBytes?: number;
}

const BUFFER_BYTES = 128 * 2 ** 20;
const CHECK_ROWS = 1 << 14;

/**
 * Writes rows into folders named by the values of some columns, as Hive and Spark do:
 * `genre=Drama/year=1999/part-00000.parquet`. The files have the other columns. Rows wait in memory up to
 * `bufferBytes`; then the folders with the most rows are written, one file each, until half of the buffer is
 * free. The rows of a folder keep their order across its files. The output appears when it is complete; a
 * failure or cancellation leaves nothing.
 */
export class PartitionedSink implements CheckedSink {
  readonly name = 'partitioned-sink';
  readonly phase = 'write';
  readonly #path: string;
  readonly #files: FilesOfFolders;
  readonly #options: PartitionedOptions;

  /** Throws UsageError for stdout, for no columns, and for a column that is named twice. */
  constructor(path: string, files: FilesOfFolders, options: PartitionedOptions) {
    const { columns } = options;
    if (path === STANDARD_STREAM)
      throw new UsageError('folders cannot be written to stdout', {
        phase: 'write',
        advice: 'Name a folder',
      });
    if (columns.length === 0) throw new UsageError('partitionBy takes one column or more');
    const twice = columns.find((column, i) => columns.indexOf(column) !== i);
    if (twice !== undefined) throw new UsageError(`partitionBy names the column "${twice}" twice`);
    [this.#path, this.#files, this.#options] = [path, files, options];
  }

  describe(): JsonObject {
    const { columns, overwrite } = this.#options;
    return {
      path: this.#path,
      format: this.#files.name,
      partitionBy: [...columns],
      ...(overwrite && { overwrite }),
    };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async check(): Promise<void> {
    await checkOutput(this.#path, this.#outputOptions());
  }

  async consume(input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const [{ columns, bufferBytes = BUFFER_BYTES }, files] = [this.#options, this.#files];
    const layout = layoutOf(input.schema, columns);
    const output = await atomicOutput(this.#path, this.#outputOptions());
    const folders = new FolderFiles(layout, { folder: output.temporary, files, bufferBytes }, ctx);
    try {
      const rows = await writeBatches(input, folders, ctx);
      await output.commit();
      return { path: this.#path, rows, bytes: folders.bytes, files: folders.files };
    } catch (error) {
      throw await output.fail(causeOfFull(error));
    }
  }

  #outputOptions(): AtomicOutputOptions {
    const { overwrite } = this.#options;
    const files = this.#files;
    return { kind: 'folder', overwrite, recognizes: (path) => isEntry(path, files) };
  }
}

/**
 * True for a path that partitioned output may have: name=value folders, data files, _SUCCESS and checksums.
 */
function isEntry(path: string, files: FilesOfFolders): boolean {
  const segments = path.split('/').filter((segment) => segment !== '');
  const name = path.endsWith('/') ? undefined : segments.pop();
  if (!segments.every((folder) => folder.includes('='))) return false;
  return name === undefined || files.isFile(name) || name === '_SUCCESS' || /^\..*\.crc$/.test(name);
}

/** Indices of the columns that name folders, and of the columns in the files. */
interface Layout {
  readonly schema: Schema;
  readonly named: readonly number[];
  readonly stored: readonly number[];
}

/** Throws UsageError for a missing column, and DataError if no column is left for the files. */
function layoutOf({ fields }: Schema, columns: readonly string[]): Layout {
  const names = fields.map(({ name }) => name);
  const named = columns.map((column) => {
    const at = names.indexOf(column);
    if (at >= 0) return at;
    const advice = spelled(nearest(column, names), `The columns are: ${names.join(', ')}`);
    throw new UsageError(`there is no column "${column}" to partition by`, { phase: 'write', advice });
  });
  const stored = [...names.keys()].filter((i) => !named.includes(i));
  if (stored.length === 0)
    throw new DataError('all columns are partition columns, so the files would have no columns', {
      phase: 'write',
      advice: 'Leave one of them out of partitionBy',
    });
  return { schema: new Schema(stored.map((i) => fields[i])), named, stored };
}

/** The part files of all folders. */
class FolderFiles implements BatchOutput {
  bytes = 0;
  files = 0;
  readonly #layout: Layout;
  readonly #to: { readonly folder: string; readonly files: FilesOfFolders; readonly bufferBytes: number };
  readonly #ctx: WritingContext;
  readonly #atOnce: number;
  readonly #rows = new FolderRows();
  #folders: FoldersOfRows | undefined;
  /** Number of rows written so far. */
  #taken = 0;
  /** Number of part files of each folder so far. */
  readonly #parts: number[] = [];

  constructor(
    layout: Layout,
    to: { readonly folder: string; readonly files: FilesOfFolders; readonly bufferBytes: number },
    ctx: WritingContext,
  ) {
    [this.#layout, this.#to] = [layout, to];
    this.#ctx = { ...ctx, events: noEvents };
    this.#atOnce = piecesAtOnce(ctx);
  }

  /**
   * Checks the memory limit after every `CHECK_ROWS` rows, so that the files do not depend on the sizes of
   * the batches.
   */
  async write(batch: RecordBatch): Promise<void> {
    for (let start = 0; start < batch.numRows;) {
      const end = Math.min(batch.numRows, start + CHECK_ROWS - (this.#taken % CHECK_ROWS));
      this.#add(end - start === batch.numRows ? batch : batch.slice(start, end));
      this.#taken += end - start;
      start = end;
      if (this.#taken % CHECK_ROWS === 0 && this.#rows.bytes > this.#to.bufferBytes)
        await this.#flush(this.#to.bufferBytes / 2);
    }
  }

  #add(batch: RecordBatch): void {
    const { schema, named, stored } = this.#layout;
    const { children } = batch.data;
    this.#folders ??= new FoldersOfRows(named.map((i) => batch.schema.fields[i]));
    const data = makeData({
      type: new Struct<TypeMap>(schema.fields),
      length: batch.numRows,
      nullCount: 0,
      children: stored.map((i) => children[i]),
    });
    this.#rows.add(
      new RecordBatch(schema, data),
      this.#folders.of(
        named.map((i) => children[i]),
        batch,
      ),
    );
  }

  async end(): Promise<void> {
    await this.#flush(0);
  }

  async #flush(leave: number): Promise<void> {
    const { signal } = this.#ctx;
    const folders = mapOrdered(untilAborted(this.#rows.take(leave), signal), this.#atOnce, (rows) =>
      this.#writeFolder(rows),
    );
    for await (const { bytes, files } of folders) {
      this.bytes += bytes;
      this.files += files;
    }
  }

  async #writeFolder({ folder, rows }: RowsOfFolder): Promise<Pick<WriteSummary, 'bytes' | 'files'>> {
    const { files } = this.#to;
    const path = join(this.#to.folder, this.#folders?.paths[folder] ?? '');
    const first = (this.#parts[folder] ??= 0);
    if (first === 0) await mkdir(path, { recursive: true });
    const file = (part: number) =>
      join(path, `part-${String(first + part).padStart(5, '0')}${files.extension}`);
    const written = await files.write(
      file,
      batchStream(rows.schema, untilAborted([rows], this.#ctx.signal)),
      this.#ctx,
    );
    this.#parts[folder] += written.files;
    return written;
  }
}

async function* untilAborted<Element>(
  elements: Iterable<Element>,
  signal: AbortSignal,
): AsyncGenerator<Element> {
  for (const element of elements) {
    throwIfAborted(signal, 'write');
    yield element;
  }
}

/** Longest file name of common file systems, in bytes. */
const LONGEST_NAME = 255;

/** Numbers the folders of rows (0, 1, 2, ... in order of appearance) by the values of some columns. */
class FoldersOfRows {
  /** The path of each folder, such as `genre=Drama/year=1999`. */
  readonly paths: string[] = [];
  readonly #numbers: RowNumbers;
  readonly #columns: readonly { readonly name: string; readonly texts: ReturnType<typeof folderTexts> }[];
  /** Folder of each distinct value. Different values may share a folder, if their texts are equal. */
  readonly #folders: number[] = [];
  readonly #byPath = new Map<string, number>();

  /** Throws DataError for columns whose types cannot name folders. */
  constructor(columns: readonly Pick<Field, 'name' | 'type'>[]) {
    this.#columns = columns.map(({ name, type }) => ({ name, texts: folderTexts(type, name) }));
    this.#numbers = new RowNumbers(columns);
  }

  /** Folder of each row of a batch. `columns`: the batch's values of the partition columns. */
  of(columns: readonly Data[], { numRows }: RecordBatch): Uint32Array {
    const numbers = this.#numbers.add(columns, numRows);
    const folders = this.#folders;
    const texts = this.#columns.map((column, i) => column.texts(columns[i]));
    for (let row = 0; row < numRows; row++) {
      const number = numbers[row];
      if (folders[number] === undefined) folders[number] = this.#folder(columns, texts, row);
      numbers[row] = folders[number];
    }
    return numbers;
  }

  #folder(columns: readonly Data[], texts: readonly ((row: number) => string)[], row: number): number {
    const names = this.#columns.map(({ name }, i) => {
      const value = isNullAt(columns[i], row) ? null : texts[i](row);
      return requireLength(folderName(name, value), name);
    });
    const path = names.join('/');
    const known = this.#byPath.get(path);
    if (known !== undefined) return known;
    this.#byPath.set(path, this.paths.length);
    return this.paths.push(path) - 1;
  }
}

function requireLength(name: string, column: string): string {
  const bytes = Buffer.byteLength(name);
  if (bytes <= LONGEST_NAME) return name;
  const summary = `a value is too long for the name of a folder, which has at most ${LONGEST_NAME} bytes: ${name.slice(0, 60)}… has ${bytes}`;
  throw new DataError(summary, {
    phase: 'write',
    column,
    advice: 'Partition by a column of short values',
  });
}

/** The rows of one folder, in the order of the input. */
interface RowsOfFolder {
  readonly folder: number;
  readonly rows: RecordBatch;
}

/**
 * Rows waiting to be written into folders, in the order of the input. Rows of one folder are collected into
 * one batch, even if rows of other folders were between them.
 */
class FolderRows {
  /** Bytes of the waiting rows. */
  bytes = 0;
  #batches: RecordBatch[] = [];
  /** The folder of each row, one list a batch. */
  #folders: Uint32Array[] = [];

  add(batch: RecordBatch, folders: Uint32Array): void {
    if (batch.numRows === 0) return;
    this.#batches.push(batch);
    this.#folders.push(folders);
    this.bytes += dataBytes(batch.data);
  }

  /**
   * Removes rows from the waiting ones and yields them, the folders with the most rows first, until at most
   * `leave` bytes wait.
   */
  *take(leave: number): Generator<RowsOfFolder> {
    if (this.#batches.length === 0) return;
    const all = joinedBatches(this.#batches);
    const folderOf = joined(this.#folders, all.numRows);
    const left = Math.floor((all.numRows * leave) / Math.max(1, this.bytes));
    [this.#batches, this.#folders, this.bytes] = [[], [], 0];
    const { order, starts } = sorted(folderOf);
    const taken = largest(starts, all.numRows - left);
    const kept = others(folderOf, taken, starts.length - 1);
    if (kept.length > 0)
      this.add(
        rowsAt(all, kept),
        kept.map((row) => folderOf[row]),
      );
    for (const folder of taken)
      yield { folder, rows: rowsAt(all, order.subarray(starts[folder], starts[folder + 1])) };
  }
}

function joined(lists: readonly Uint32Array[], length: number): Uint32Array {
  const all = new Uint32Array(length);
  let at = 0;
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  return all;
}

/** Groups rows by folder; the rows of a folder keep their order. Rows of folder f begin at `starts[f]`. */
function sorted(folderOf: Uint32Array): { readonly order: Uint32Array; readonly starts: Uint32Array } {
  let most = 0;
  for (let row = 0; row < folderOf.length; row++) if (folderOf[row] > most) most = folderOf[row];
  const starts = new Uint32Array(most + 2);
  for (let row = 0; row < folderOf.length; row++) starts[folderOf[row] + 1]++;
  for (let folder = 0; folder <= most; folder++) starts[folder + 1] += starts[folder];
  const next = starts.slice();
  const order = new Uint32Array(folderOf.length);
  for (let row = 0; row < folderOf.length; row++) order[next[folderOf[row]]++] = row;
  return { order, starts };
}

/** The rows of all folders that are not in `taken`. */
function others(folderOf: Uint32Array, taken: readonly number[], folders: number): Uint32Array {
  const isTaken = new Uint8Array(folders);
  for (const folder of taken) isTaken[folder] = 1;
  const rows = new Uint32Array(folderOf.length);
  let count = 0;
  for (let row = 0; row < rows.length; row++) {
    rows[count] = row;
    count += 1 - isTaken[folderOf[row]];
  }
  return rows.subarray(0, count);
}

/**
 * The folders with the most rows that together have at least `rows` rows: as few as possible, largest first,
 * but at least one.
 */
function largest(starts: Uint32Array, rows: number): number[] {
  const sizeOf = (folder: number) => starts[folder + 1] - starts[folder];
  const bySize = [...starts.subarray(1).keys()]
    .filter((folder) => sizeOf(folder) > 0)
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  let sum = 0;
  const end = bySize.findIndex((folder) => (sum += sizeOf(folder)) >= rows);
  return end < 0 ? bySize : bySize.slice(0, end + 1);
}

/** Concatenates batches of the same columns, without their origins. */
function joinedBatches(batches: readonly RecordBatch[]): RecordBatch {
  const [{ schema }] = batches;
  const children = schema.fields.map(({ type }, i) =>
    joinData(
      type,
      batches.map(({ data }) => data.children[i]),
    ),
  );
  const length = batches.reduce((sum, { numRows }) => sum + numRows, 0);
  return batchOf(schema, length, children);
}

/** Gathers a batch's rows at the given positions, without their origins. */
function rowsAt({ schema, data }: RecordBatch, positions: Uint32Array): RecordBatch {
  const children = data.children.map((column) => takeData(column, positions));
  return batchOf(schema, positions.length, children);
}
