import {
  Binary,
  type Data,
  DataType,
  type Field,
  type Int32,
  makeData,
  RecordBatch,
  RecordBatchReader,
  Schema,
  Table,
  tableFromIPC,
  tableToIPC,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import type { ParquetFile, RecordBatch as WasmBatch } from 'parquet-wasm/node';
import { CapacityError, DataError, FactorFlowError } from '../../../engine/errors.ts';
import { counted, formatBytes } from '../../../engine/format.ts';
import { batchOf } from '../../../engine/stream/whole-data.ts';
import { mapInnermost, uuidMetadata } from '../../../engine/values/value-texts.ts';
import { errorCode, fileProblem, messageOf } from '../../files/file-problem.ts';
import { plainBatches, plainSchema } from '../../files/plain-columns.ts';
import type { FetchCounter } from '../../files/random-access.ts';
import type { LocatedBatch, ParquetFileInfo, ParquetFileReader, ReadOptions } from '../backend.ts';
import type { Footer, RowGroupInfo, SchemaElement } from '../footer.ts';
import { PageSums } from '../pages/page-sums.ts';
import type { PageFile } from '../pages/read-pages.ts';
import { decodeThrift, encodeFooter, structsIn, thrift } from '../write/thrift.ts';
import { deltaColumns, deltaMetadata, readDeltaColumn } from './delta-columns.ts';
import { FileBlob } from './file-blob.ts';
import { isTrap, WasmInstance } from './wasm-instance.ts';

/**
 * Opens a decoder for an open file; the caller closes the handle. If the decoder refuses the Arrow types that
 * the writer stored, such as a list view, it takes the types of Parquet for all columns.
 */
export async function openDecoder(page: PageFile): Promise<WasmDecoder> {
  const { file, footer, counter } = page;
  try {
    return await opened(page, true);
  } catch (error) {
    const isFinal = footer.arrowSchema === undefined || counter.failure !== undefined;
    const cause = isFinal ? error : await opened(page, false).catch((again: unknown) => ({ again }));
    if (cause instanceof WasmDecoder) return cause;
    throw problem(counter.failure ?? error, file);
  }
}

/** `asStored`: false without the types of the writer. */
async function opened({ file, handle, footer, counter }: PageFile, asStored: boolean): Promise<WasmDecoder> {
  const instance = WasmInstance.take();
  try {
    const sums = new PageSums(file, handle, footer.rowGroups);
    let blob = new FileBlob({ file, handle, counter, sums }, 0, footer.fileBytes);
    if (!asStored) blob = await withTypes(blob, undefined);
    const openFile = () => instance.guard(() => instance.wasm.ParquetFile.fromFile(blob));
    const schemaOf = (of: ParquetFile) =>
      instance.guardSync(() => withoutViews(tableFromIPC(of.schema().intoIPCStream()).schema));
    let parquet = await openFile();
    let stored = schemaOf(parquet);
    const types = int96Types(footer, stored);
    if (types !== undefined || hasUnreadDictionaries(stored)) {
      instance.guardSync(() => parquet.free());
      blob = await withTypes(blob, types);
      parquet = await openFile();
      stored = schemaOf(parquet);
    }
    const info = {
      file,
      bytes: footer.fileBytes,
      rows: footer.rows,
      schema: plainSchema(withUuidFields(footer, stored)),
      rowGroups: footer.rowGroups,
    };
    return new WasmDecoder(info, stored, blob, instance, parquet, counter);
  } catch (error) {
    instance[Symbol.dispose]();
    throw error;
  }
}

/** The state of reading a row group; if the decoder fails, the rest is tried again. */
interface GroupState {
  readonly rowGroup: number;
  readonly sizes: StreamRows;
  /** Columns that crash the decoder, read by another library. */
  apart: ReadonlyMap<string, Data>;
}

/**
 * An open file with its own instance of the Rust implementation, compiled to WebAssembly. It reads every
 * codec and encoding.
 */
export class WasmDecoder implements ParquetFileReader {
  readonly info: ParquetFileInfo;
  readonly #counter: FetchCounter;
  /** The decoder's schema, before strings are made plain. */
  readonly #stored: Schema;
  readonly #blob: FileBlob;
  #instance: WasmInstance;
  #parquet: ParquetFile;
  #closed = false;

  constructor(
    info: ParquetFileInfo,
    stored: Schema,
    blob: FileBlob,
    instance: WasmInstance,
    parquet: ParquetFile,
    counter: FetchCounter,
  ) {
    this.info = info;
    this.#stored = stored;
    this.#blob = blob;
    this.#instance = instance;
    this.#parquet = parquet;
    this.#counter = counter;
  }

  async *read(options: ReadOptions): AsyncGenerator<LocatedBatch> {
    const { file, rowGroups } = this.info;
    const wanted = options.rowGroups ?? [...rowGroups.keys()];
    const columns = options.columns;
    if (columns?.length === 0) throw new DataError('no column is wanted', { phase: 'read', file });
    const schema = new Schema(this.#stored.fields.filter(({ name }) => columns?.includes(name) ?? true));
    for (const rowGroup of wanted)
      for await (const { batch, row } of this.#readGroup(rowGroup, schema, options))
        yield { batch, rowGroup, firstRow: rowGroups[rowGroup].firstRow + row };
  }

  /** The wanted rows of a row group, with the number of each batch's first row. */
  async *#readGroup(
    rowGroup: number,
    schema: Schema,
    options: ReadOptions,
  ): AsyncGenerator<{ readonly batch: RecordBatch; readonly row: number }> {
    const { file, rowGroups } = this.info;
    const { from, rows } = options.range ?? { from: 0, rows: rowGroups[rowGroup].rows };
    const end = from + rows;
    const state: GroupState = {
      rowGroup,
      sizes: new StreamRows(rowGroups[rowGroup], schema.fields, options.batchSize),
      apart: new Map(),
    };
    let done = from;
    while (done < end) {
      const before = done;
      try {
        for await (const batch of this.#readCombined(state, done, end, schema, options)) {
          yield { batch, row: done };
          done += batch.numRows;
        }
        if (done === before) break;
      } catch (error) {
        await this.#recover(this.#counter.failure ?? error, state, schema);
      }
    }
    if (done === end) return;
    throw new DataError(`the data are damaged: ${counted(done, 'row')} where the footer says ${end}`, {
      phase: 'read',
      file,
      rowGroup,
    });
  }

  /** Prepares another attempt at the rest of a row group, or throws the failure. */
  async #recover(failure: unknown, state: GroupState, schema: Schema): Promise<void> {
    const { file } = this.info;
    const { rowGroup, sizes } = state;
    if (isTrap(failure) && state.apart.size === 0) {
      const apart = await this.#readSeparately(rowGroup, schema).catch(() => undefined);
      if (apart !== undefined && apart.size > 0) {
        state.apart = apart;
        return this.#restart();
      }
    }
    // Fewer rows may help: the text of a batch may have exceeded the decoder's memory.
    if (!isTooMuch(failure)) throw problem(failure, file, rowGroup);
    if (!sizes.shrink()) throw sizes.beyond(file, rowGroup) ?? problem(failure, file, rowGroup);
    await this.#restart();
  }

  /** Reads the columns that may crash the decoder. */
  async #readSeparately(rowGroup: number, schema: Schema): Promise<ReadonlyMap<string, Data>> {
    const fields = deltaColumns(this.info.rowGroups[rowGroup], schema.fields);
    if (fields.length === 0) return new Map();
    const metadata = await deltaMetadata(this.#blob);
    const columns = new Map<string, Data>();
    for (const field of fields)
      columns.set(field.name, await readDeltaColumn(this.#blob, metadata, rowGroup, field));
    return columns;
  }

  /** Rows of `#readRows` combined with the columns that another library has read. */
  async *#readCombined(
    { rowGroup, sizes, apart }: GroupState,
    offset: number,
    end: number,
    schema: Schema,
    options: ReadOptions,
  ): AsyncGenerator<RecordBatch> {
    if (apart.size === 0) return yield* this.#readRows(rowGroup, offset, end, sizes, schema, options);
    const others = new Schema(schema.fields.filter(({ name }) => !apart.has(name)));
    const whole = plainSchema(schema);
    const joined = (from: number, rows: number, batch?: RecordBatch) => {
      const children = schema.fields.map(
        ({ name }) => apart.get(name)?.slice(from, rows) ?? (batch?.getChild(name)?.data[0] as Data),
      );
      return batchOf(whole, rows, children);
    };
    let from = offset;
    if (others.fields.length > 0) {
      for await (const batch of this.#readRows(rowGroup, offset, end, sizes, others, {
        ...options,
        columns: others.fields.map(({ name }) => name),
      })) {
        yield joined(from, batch.numRows, batch);
        from += batch.numRows;
      }
      return;
    }
    for (; from < end; from += options.batchSize) yield joined(from, Math.min(options.batchSize, end - from));
  }

  /** Reads rows from [offset, end) of a row group. */
  async *#readRows(
    rowGroup: number,
    offset: number,
    end: number,
    sizes: StreamRows,
    schema: Schema,
    { columns, borrowed = false }: ReadOptions,
  ): AsyncGenerator<RecordBatch> {
    const [instance, parquet] = [this.#instance, this.#parquet];
    const wish = {
      batchSize: sizes.batch,
      limit: Math.min(sizes.limit, end - offset),
      rowGroups: [rowGroup],
      ...(offset > 0 && { offset }),
      ...this.#selection(rowGroup, columns),
    };
    const asNumbers = hasOnlyNumbers(schema);
    const stream = await instance.guard(() => parquet.stream(wish));
    const reader = stream.getReader();
    let [rows, size] = [0, 0];
    try {
      for (;;) {
        const { done, value } = await instance.guard<{ done: boolean; value?: WasmBatch }>(() =>
          reader.read(),
        );
        if (done || value === undefined) return sizes.learn(size, rows);
        const numbers =
          asNumbers &&
          instance.guardSync(() =>
            takeNumbers(value, schema, () => instance.wasm.wasmMemory().buffer, borrowed),
          );
        if (numbers) {
          try {
            yield numbers;
          } finally {
            instance.guardSync(() => value.free());
          }
          continue;
        }
        const bytes = instance.guardSync(() => value.intoIPCStream());
        size += bytes.length;
        for (const batch of RecordBatchReader.from(bytes)) {
          rows += batch.numRows;
          yield* plainBatches(onlyColumns(batch, columns));
        }
      }
    } finally {
      await instance.guard(() => reader.cancel()).catch(() => instance.discard());
    }
  }

  /**
   * Columns by the paths of their leaves. The decoder also takes the name of a list or struct, but finds none
   * that is not ASCII, since it compares bytes with characters. A name with a dot may be a path: all are read.
   */
  #selection(rowGroup: number, names: readonly string[] | undefined): { columns?: string[] } {
    if (names === undefined || names.some((name) => name.includes('.'))) return {};
    const wanted = new Set(names);
    const paths = this.info.rowGroups[rowGroup].columns.map(({ column }) => column);
    return { columns: paths.filter((path) => wanted.has(path.split('.', 1)[0])) };
  }

  /** Opens the file in a new decoder. */
  async #restart(): Promise<void> {
    this.#instance.discard();
    this.#instance = WasmInstance.take();
    this.#parquet = await this.#instance.guard(() => this.#instance.wasm.ParquetFile.fromFile(this.#blob));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#instance.guardSync(() => this.#parquet.free());
    } catch {
      this.#instance.discard();
    }
    this.#instance[Symbol.dispose]();
  }
}

function onlyColumns(batch: RecordBatch, columns: readonly string[] | undefined): RecordBatch {
  if (columns === undefined || columns.length === batch.numCols) return batch;
  return batch.selectAt(
    [...batch.schema.fields.keys()].filter((index) => columns.includes(batch.schema.fields[index].name)),
  );
}

/** True for failures that fewer rows may avoid: no memory, or text offsets beyond 32 bits. */
function isTooMuch(error: unknown): boolean {
  return isTrap(error) || (!(error instanceof FactorFlowError) && messageOf(error).includes('overflow'));
}

/** An error that names the file and row group. The decoder throws strings, its own errors, or traps. */
function problem(error: unknown, file: string, rowGroup?: number): Error {
  if (error instanceof FactorFlowError) return error;
  const details = { phase: 'read', file, rowGroup, cause: error };
  if (isTrap(error))
    return new DataError('the Parquet data are damaged: the decoder broke down on them', details);
  if (errorCode(error) !== undefined) return fileProblem(error, 'read', file);
  return new DataError(`the Parquet data cannot be decoded: ${messageOf(error)}`, details);
}

/**
 * The C data interface of a record batch in 32-bit WebAssembly memory:
 *
 *     ArrowArray { length, null_count, offset, n_buffers, n_children: int64;  buffers, children, dictionary, release, private: pointer }
 *                  0       8           16      24         32                  40       44        48          52       56
 *
 * A column of numbers without nulls has the buffers [validity (null), values]. Its values are taken directly
 * from the decoder's memory; the IPC stream would copy them three times.
 */
const at = {
  length: 0,
  nullCount: 8,
  offset: 16,
  buffers: 24,
  children: 32,
  bufferList: 40,
  childList: 44,
} as const;

/** True for a schema whose batches `takeNumbers` can copy. */
function hasOnlyNumbers(schema: Schema): boolean {
  return schema.fields.every(
    ({ type }) =>
      (DataType.isInt(type) && type.bitWidth >= 32) || (DataType.isFloat(type) && type.precision > 0),
  );
}

/**
 * Copies a batch's values out, or returns views that are valid until the decoder continues. Undefined, with
 * the batch unchanged, if it has nulls or another layout.
 */
function takeNumbers(
  batch: WasmBatch,
  schema: Schema,
  memory: () => ArrayBuffer,
  views: boolean,
): RecordBatch | undefined {
  const exported = batch.toFFI();
  try {
    const buffer = memory();
    const view = new DataView(buffer);
    const array = exported.arrayAddr();
    const length = int64(view, array + at.length);
    if (int64(view, array + at.offset) !== 0 || int64(view, array + at.children) !== schema.fields.length)
      return undefined;
    const list = view.getUint32(array + at.childList, true);
    const children: Data[] = [];
    for (const [index, { type }] of schema.fields.entries()) {
      const child = view.getUint32(list + 4 * index, true);
      const plain =
        int64(view, child + at.length) === length &&
        int64(view, child + at.nullCount) === 0 &&
        int64(view, child + at.buffers) === 2;
      if (!plain) return undefined;
      const values = view.getUint32(view.getUint32(child + at.bufferList, true) + 4, true);
      const from = values + int64(view, child + at.offset) * type.ArrayType.BYTES_PER_ELEMENT;
      const data = views
        ? new type.ArrayType(buffer, from, length)
        : new type.ArrayType(buffer.slice(from, from + length * type.ArrayType.BYTES_PER_ELEMENT));
      children.push(makeData({ type: type as Int32, length, nullCount: 0, data }));
    }
    return batchOf(schema, length, children);
  } finally {
    exported.free();
  }
}

function int64(view: DataView, position: number): number {
  return Number(view.getBigInt64(position, true));
}

/**
 * Approximate limit of a decoder's stream in bytes: it decodes all requested rows before it returns the
 * first.
 */
const STREAM = { numbers: 1 << 28, text: 3 << 25 } as const;
/** Approximate limit of a batch's text in bytes. */
const BATCH = 1 << 25;
/** Bytes of the decoder's memory, which may contain a text several times. */
const DECODER = 2 ** 32;
/** Encodings that store a text, or a part of it, once for many rows. */
const repeating = ['rle_dictionary', 'plain_dictionary', 'delta_byte_array'];

/**
 * Chooses the number of rows to request from the decoder, to limit its memory. A row group may have any
 * number of rows, and each row gets its own copy of a text that is stored once. Newer files contain the total
 * length of the text; for others the first stream is short if rows may be long.
 */
export class StreamRows {
  /** Estimated bytes of a row. */
  #perRow: number;
  /** Most bytes of text in one row. */
  readonly #longest: number;
  readonly #batchSize: number;
  readonly #hasText: boolean;
  /** Limit of rows after a stream was too large. */
  #most = Number.POSITIVE_INFINITY;

  /** `fields`: the columns that the decoder returns. `batchSize`: rows of a batch without text. */
  constructor({ columns, rows }: RowGroupInfo, fields: readonly Field[], batchSize: number) {
    const text = fields
      .filter(({ type }) => DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isUtf8View(type))
      .map(({ name }) => name);
    const chunks = columns.filter(({ column }) => text.includes(column));
    this.#batchSize = batchSize;
    this.#hasText = text.length > 0;
    this.#longest = chunks.reduce((sum, { unpackedBytes }) => sum + unpackedBytes, 0);
    const known = chunks.reduce((sum, { textBytes, unpackedBytes }) => sum + (textBytes ?? unpackedBytes), 0);
    this.#perRow = 8 * fields.length + known / Math.max(1, rows);
    const unknown = chunks.filter(
      ({ textBytes, encodings }) =>
        textBytes === undefined && encodings.some((encoding) => repeating.includes(encoding)),
    );
    const longest = unknown.reduce((sum, { unpackedBytes }) => sum + unpackedBytes, 0);
    if (longest * rows > BATCH) this.#most = Math.max(1, Math.floor(BATCH / longest));
  }

  /** Number of rows of the next stream. */
  get limit(): number {
    return Math.max(
      1,
      Math.min(this.#most, Math.floor((this.#hasText ? STREAM.text : STREAM.numbers) / this.#perRow)),
    );
  }

  /** Number of rows of its batches. */
  get batch(): number {
    return Math.max(
      1,
      Math.min(
        this.limit,
        this.#batchSize,
        this.#hasText ? Math.floor(BATCH / this.#perRow) : this.#batchSize,
      ),
    );
  }

  /** Corrects the estimate of a row's bytes by the text of a stream that was decoded. */
  learn(bytes: number, rows: number): void {
    if (rows === 0 || !this.#hasText) return;
    this.#perRow = Math.max(1, bytes / rows);
    this.#most = Number.POSITIVE_INFINITY;
  }

  /**
   * Requests fewer rows after the decoder ran out of memory. False if it was one row, or if there is no text.
   */
  shrink(): boolean {
    if (!this.#hasText || this.limit === 1) return false;
    this.#most = Math.max(1, this.limit >> 6);
    return true;
  }

  /**
   * Error for a row whose text alone is too large; undefined if no text of the row group can be that long.
   */
  beyond(file: string, rowGroup: number): CapacityError | undefined {
    if (this.#longest < DECODER / 8) return undefined;
    return new CapacityError(
      `a row's text does not fit into the decoder's 4 GiB: the row group has texts of ${formatBytes(this.#longest)}`,
      { phase: 'read', file, rowGroup, advice: 'Write shorter ids' },
    );
  }
}

/** Key of a footer's metadata with the columns' Arrow types, which the decoder then uses. */
const KEY = 'ARROW:schema';
/** Numbers of fields in parquet.thrift. */
const [METADATA, KEY_FIELD, VALUE_FIELD] = [5, 1, 2];
/** Bytes after the footer: its length and "PAR1". */
const END = 8;

/**
 * True if the writer's types have dictionaries that crash the decoder: of decimals, float16, booleans and
 * others.
 */
function hasUnreadDictionaries({ fields }: Pick<Schema, 'fields'>): boolean {
  return fields.some(({ type }) =>
    DataType.isDictionary(type)
      ? !isRead(type.dictionary)
      : hasUnreadDictionaries({ fields: type.children ?? [] }),
  );
}

function isRead(type: DataType): boolean {
  if (DataType.isFloat(type)) return type.precision > 0;
  return [
    DataType.isUtf8,
    DataType.isLargeUtf8,
    DataType.isBinary,
    DataType.isLargeBinary,
    DataType.isInt,
    DataType.isDate,
    DataType.isTime,
    DataType.isTimestamp,
  ].some((is) => is(type));
}

/**
 * The types for a file whose writer has stored none and whose times are INT96: microseconds. Nanoseconds, in
 * which the decoder reads INT96 otherwise, only hold the years 1677 to 2262. Undefined for other files.
 */
function int96Types(footer: Footer, stored: Schema): Schema | undefined {
  if (footer.arrowSchema !== undefined) return undefined;
  const types = mapStored(footer, stored, (field, { physicalType }) =>
    physicalType === 'int96' ? field.clone({ type: new TimestampMicrosecond() }) : field,
  );
  return types === stored ? undefined : types;
}

/** The decoder's schema with the texts and bytes that its batches have where the writer had views. */
function withoutViews(schema: Schema): Schema {
  const fields = schema.fields.map((field) =>
    mapInnermost(field, (inner) => {
      if (DataType.isUtf8View(inner.type)) return inner.clone({ type: new Utf8() });
      return DataType.isBinaryView(inner.type) ? inner.clone({ type: new Binary() }) : inner;
    }),
  );
  return new Schema(fields, schema.metadata);
}

/** The decoder's schema with UUIDs marked, which it takes for 16 bytes of any kind. */
function withUuidFields(footer: Footer, stored: Schema): Schema {
  return mapStored(footer, stored, (field, { logicalType }) =>
    logicalType === 'UUID' ? field.clone({ metadata: uuidMetadata() }) : field,
  );
}

/** Changes the innermost fields of a schema, which have an element each in the footer. */
function mapStored(
  { schema: elements }: Footer,
  schema: Schema,
  change: (field: Field, element: SchemaElement) => Field,
): Schema {
  const leaves = elements.filter(({ children }) => children === 0).values();
  const fields = schema.fields.map((field) =>
    mapInnermost(field, (inner) => {
      const { value } = leaves.next();
      return value === undefined ? inner : change(inner, value);
    }),
  );
  return fields.every((field, i) => field === schema.fields[i])
    ? schema
    : new Schema(fields, schema.metadata);
}

/** The file with these types for the decoder; undefined: without types of its writer. */
async function withTypes(file: FileBlob, types: Schema | undefined): Promise<FileBlob> {
  const end = new DataView(await file.slice(file.size - END).arrayBuffer());
  const start = file.size - END - end.getUint32(0, true);
  const footer = decodeThrift(new Uint8Array(await file.slice(start, file.size - END).arrayBuffer()));
  const entries = footer.has(METADATA) ? structsIn(footer, METADATA) : [];
  const kept = entries.filter((entry) => {
    const key = entry.get(KEY_FIELD);
    return !(key !== undefined && 'bytes' in key && Buffer.from(key.bytes).toString() === KEY);
  });
  if (types !== undefined) {
    const value = Buffer.from(tableToIPC(new Table(types))).toString('base64');
    kept.push(
      new Map([
        [KEY_FIELD, thrift.binary(KEY)],
        [VALUE_FIELD, thrift.binary(value)],
      ]),
    );
  }
  footer.delete(METADATA);
  if (kept.length > 0) footer.set(METADATA, thrift.structs(kept));
  return file.withTail(start, encodeFooter(footer));
}
