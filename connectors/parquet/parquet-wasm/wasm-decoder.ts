import { counted } from '../../../engine/format.ts';
import { makeData, RecordBatch, RecordBatchReader, Schema, Struct, tableFromIPC } from 'apache-arrow';
import type { Data } from 'apache-arrow';
import type { ParquetFile, RecordBatch as WasmBatch } from 'parquet-wasm/node';
import { DataError, FactorFlowError } from '../../../engine/errors.ts';
import { errorCode, fileProblem, messageOf } from '../../files/file-problem.ts';
import { plainBatches, plainSchema } from '../../files/plain-columns.ts';
import type { LocatedBatch, ParquetFileInfo, ParquetFileReader, ReadOptions } from '../backend.ts';
import { PageSums } from '../pages/page-sums.ts';
import type { PageFile } from '../pages/read-pages.ts';
import type { FetchCounter } from '../random-access.ts';
import { hasOnlyNumbers, takeNumbers } from './arrow-ffi.ts';
import { deltaColumns, deltaMetadata, readDeltaColumn } from './delta-columns.ts';
import { StreamRows } from './stream-rows.ts';
import { FileBlob } from './file-blob.ts';
import { hasUnreadDictionaries, int96Types, withTypes, withUuidFields } from './type-hints.ts';
import { isTrap, WasmInstance } from './wasm-instance.ts';

/** Opens a decoder for an open file; the caller closes the handle. */
export async function openDecoder({ file, handle, footer, counter }: PageFile): Promise<WasmDecoder> {
  const instance = WasmInstance.take();
  try {
    const sums = new PageSums(file, handle, footer.rowGroups);
    let blob = new FileBlob({ file, handle, counter, sums }, 0, footer.fileBytes);
    const opened = () => instance.guard(() => instance.wasm.ParquetFile.fromFile(blob));
    const schemaOf = (of: ParquetFile) =>
      instance.guardSync(() => tableFromIPC(of.schema().intoIPCStream()).schema);
    let parquet = await opened();
    let stored = schemaOf(parquet);
    const types = int96Types(footer, stored);
    if (types !== undefined || hasUnreadDictionaries(stored)) {
      instance.guardSync(() => parquet.free());
      blob = await withTypes(blob, types);
      parquet = await opened();
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
    throw problem(counter.failure ?? error, file);
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
      return new RecordBatch(
        whole,
        makeData({ type: new Struct(whole.fields), length: rows, nullCount: 0, children }),
      );
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
