import {
  Binary,
  Bool,
  DataType,
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  type RecordBatch,
  Schema,
  Timestamp,
  TimeUnit,
  Utf8,
} from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import { idTooLong, LONGEST_ID } from '../../../engine/keys/arrow-keys.ts';
import { closeReader } from '../../../engine/regular-file.ts';
import { RowStream } from '../../../engine/stream/ipc-bytes.ts';
import { openIpc } from '../../../engine/stream/read-ipc.ts';
import { messageMetadata } from '../../arrow/verify-metadata.ts';
import { emptyBatch } from '../../files/common-schema.ts';
import { fileProblem } from '../../files/file-problem.ts';
import { isUrl } from '../../files/path-kinds.ts';
import { type FetchCounter, openRandomAccess, readExactly } from '../../files/random-access.ts';
import type { UrlVersions } from '../../http/request.ts';
import type { Encoding } from '../../formats.ts';
import { RowEncoder } from '../../output/row-encoder.ts';
import type {
  LocatedBatch,
  ParquetBackend,
  ParquetFileInfo,
  ParquetFileReader,
  ParquetFileWriter,
  ReadOptions,
  WriteOptions,
  WrittenFile,
} from '../backend.ts';
import { RowGroups } from '../encode-row-groups.ts';
import { readFooterOf, type ColumnChunkInfo, type Footer, type SchemaElement } from '../footer.ts';
import { ColumnPages, isReadCodec, PageProblem, FileWindow } from '../pages/column-pages.ts';
import { HEADER_BYTES, HeaderReader } from '../pages/page-header.ts';
import { PageKernel } from '../pages/page-kernel.ts';
import { hasPlainPages, type PageFile, readPages } from '../pages/read-pages.ts';
import { PartFile } from '../write/parquet-files.ts';
import type { WasmDecoder } from './wasm-decoder.ts';

/**
 * The default backend. Numbers in common pages are read page by page. Everything else is read by a decoder
 * for all codecs and encodings, loaded at its first use.
 */
export const parquetWasmBackend: ParquetBackend = {
  name: 'parquet-wasm',
  open: openFile,
  create: (file, schema, options) => WasmFileWriter.create(file, schema, options),
};

async function openFile(file: string, waits?: boolean, versions?: UrlVersions): Promise<FileReader> {
  const handle = await openRandomAccess(file, waits, versions);
  const counter: FetchCounter = { fetches: 0, bytes: 0 };
  try {
    const footer = await readFooterOf(handle, file);
    const opened = { file, handle, footer, counter };
    const schema = isUrl(file) ? undefined : footerSchema(footer);
    if (schema !== undefined)
      return new FileReader(
        opened,
        withPlainColumns(
          { file, bytes: footer.fileBytes, rows: footer.rows, schema, rowGroups: footer.rowGroups },
          footer,
        ),
      );
    const decoder = await openDecoder(opened);
    return new FileReader(
      opened,
      isUrl(file) ? decoder.info : withPlainColumns(decoder.info, footer),
      decoder,
    );
  } catch (error) {
    await closeReader(handle);
    throw fileProblem(error, 'read', file);
  }
}

function withPlainColumns(info: ParquetFileInfo, footer: Footer): ParquetFileInfo {
  return {
    ...info,
    plainColumns: info.schema.fields
      .filter(({ name, type }) => storedAsIs(footer, name, type))
      .map(({ name }) => name),
  };
}

async function openDecoder(file: PageFile): Promise<WasmDecoder> {
  return (await import('./wasm-decoder.ts')).openDecoder(file);
}

class FileReader implements ParquetFileReader {
  readonly info: ParquetFileInfo;
  readonly counter: FetchCounter;
  readonly #opened: PageFile;
  #decoder: WasmDecoder | undefined;
  #closed = false;

  constructor(opened: PageFile, info: ParquetFileInfo, decoder?: WasmDecoder) {
    [this.#opened, this.info, this.counter, this.#decoder] = [opened, info, opened.counter, decoder];
  }

  async *read(options: ReadOptions): AsyncGenerator<LocatedBatch> {
    const { rowGroups, schema: all } = this.info;
    const schema = new Schema(all.fields.filter(({ name }) => options.columns?.includes(name) ?? true));
    for (const rowGroup of options.rowGroups ?? rowGroups.keys()) {
      if (
        schema.fields.length === 0 ||
        !hasPlainPages(
          this.info,
          rowGroup,
          schema.fields.map(({ name }) => name),
        )
      ) {
        await this.#requireShortIds(rowGroup, schema, options);
        yield* this.#decode({ ...options, rowGroups: [rowGroup] });
        continue;
      }
      const { rows, firstRow } = rowGroups[rowGroup];
      const range = options.range ?? { from: 0, rows, starts: {} };
      let done = range.from;
      try {
        for await (const { batch, row } of readPages(this.#opened, rowGroup, range, schema, options)) {
          yield { batch, rowGroup, firstRow: firstRow + range.from + row };
          done = range.from + row + batch.numRows;
        }
      } catch (error) {
        if (!(error instanceof PageProblem)) throw error;
        yield* this.#decodeFrom(error, {
          ...options,
          rowGroups: [rowGroup],
          range: { from: done, rows: range.from + range.rows - done, starts: {} },
        });
      }
    }
  }

  /** See requireShortIdsIn; for files on a web server, pages are read once. */
  async #requireShortIds(rowGroup: number, schema: Schema, { ids = [] }: ReadOptions): Promise<void> {
    if (this.info.plainColumns === undefined) return;
    const columns = new Schema(schema.fields.filter(({ name }) => ids.includes(name)));
    await requireShortIdsIn(this.#opened, rowGroup, columns);
  }

  /** Reads the rest of a row group with the decoder. If that fails too, the error names the column. */
  async *#decodeFrom({ column, message }: PageProblem, options: ReadOptions): AsyncGenerator<LocatedBatch> {
    try {
      yield* this.#decode(options);
    } catch (error) {
      if (!(error instanceof DataError) || error.details.column !== undefined) throw error;
      throw new DataError(`${error.summary} (${message})`, { ...error.details, column });
    }
  }

  async *#decode(options: ReadOptions): AsyncGenerator<LocatedBatch> {
    this.#decoder ??= await openDecoder(this.#opened);
    yield* this.#decoder.read(options);
  }

  async verify(): Promise<void> {
    await this.#opened.handle.verify?.();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#decoder?.close();
    await closeReader(this.#opened.handle);
  }
}

/**
 * Collects rows into row groups, encodes them, and appends them to a file. The bytes depend only on the
 * batches.
 */
class WasmFileWriter implements ParquetFileWriter {
  readonly #part: PartFile;
  readonly #schema: Schema;
  readonly #groups: RowGroups;
  readonly #encoding: Encoding;
  readonly #encoder = new RowEncoder();
  #rows = 0;

  private constructor(
    file: string,
    part: PartFile,
    schema: Schema,
    { codec, dictionary = true, rowGroupSize }: WriteOptions,
  ) {
    [this.#part, this.#schema] = [part, schema];
    this.#groups = new RowGroups(schema, false, { rowGroupSize, rowsPerPart: null });
    this.#encoding = { format: 'parquet', codec, dictionary, file };
  }

  static async create(file: string, schema: Schema, options: WriteOptions): Promise<WasmFileWriter> {
    return new WasmFileWriter(file, await PartFile.create(file), schema, options);
  }

  async write(batch: RecordBatch): Promise<void> {
    for (const group of this.#groups.add(batch)) await this.#append(group);
  }

  async close(): Promise<WrittenFile> {
    let { rest } = this.#groups;
    if (rest === undefined && this.#rows === 0) {
      rest = new RowStream(this.#schema, false);
      rest.add(emptyBatch(this.#schema));
    }
    if (rest !== undefined) await this.#append(rest);
    await this.#part.close();
    return { rows: this.#rows, bytes: this.#part.bytes };
  }

  abort(): Promise<void> {
    return this.#part.abort();
  }

  async #append(group: RowStream): Promise<void> {
    this.#rows += group.rows;
    await this.#part.append(await this.#encoder.encode(group, this.#encoding, 0));
  }
}

/**
 * Only columns with a page of more bytes, uncompressed, are searched: the copies that the decoder makes of
 * smaller pages take little memory.
 */
export const LARGE_PAGE = 1 << 26;
/** Rows whose lengths are in memory at once. */
const ROWS = 1 << 16;

/**
 * Throws CapacityError for a text id that is too long, with its row, before the decoder has several copies of
 * it in memory. Columns whose pages cannot be read here are left to the decoder.
 */
export async function requireShortIdsIn(
  opened: PageFile,
  rowGroup: number,
  ids: Schema,
  largePage = LARGE_PAGE,
): Promise<void> {
  for (const { name, type, nullable } of ids.fields) {
    const chunk = opened.footer.rowGroups[rowGroup].columns.find(({ column }) => column === name);
    if (chunk === undefined || !DataType.isUtf8(type) || !isReadCodec(chunk.codec)) continue;
    if (chunk.unpackedBytes <= largePage || !(await hasLargePage(opened, chunk, largePage))) continue;
    await requireShortTexts(opened, rowGroup, chunk, nullable);
  }
}

/** True if the headers, as far as they can be read, show an uncompressed page of more bytes. */
async function hasLargePage(
  { file, handle }: PageFile,
  { start, bytes }: ColumnChunkInfo,
  largePage: number,
): Promise<boolean> {
  const kernel = PageKernel.take();
  try {
    const headers = new HeaderReader(kernel);
    const end = start + bytes;
    for (let at = start; at < end;) {
      const head = await readExactly(handle, file, at, Math.min(HEADER_BYTES, end - at));
      const page = headers.read(head);
      if (page.unpacked > largePage) return true;
      at += page.bytes + page.packed;
    }
    return false;
  } catch {
    return false;
  } finally {
    kernel.giveBack();
  }
}

/** Reads the lengths of a column's texts in place of the texts. */
async function requireShortTexts(
  { file, handle, footer, counter }: PageFile,
  rowGroup: number,
  chunk: ColumnChunkInfo,
  nullable: boolean,
): Promise<void> {
  const { rows, firstRow } = footer.rowGroups[rowGroup];
  const { column } = chunk;
  const kernel = PageKernel.take();
  const window = new FileWindow(handle, file, counter, chunk);
  try {
    const out = kernel.reserve(Uint32Array.BYTES_PER_ELEMENT * ROWS);
    const pages = new ColumnPages(window, { ...chunk, file, rowGroup }, 4, nullable, kernel, textLengths);
    for (let row = 0; row < rows; row += ROWS) {
      const some = Math.min(ROWS, rows - row);
      await pages.fill(out, some);
      const lengths = new Uint32Array(kernel.buffer, out, some);
      const long = lengths.findIndex((bytes) => bytes > LONGEST_ID);
      if (long >= 0) throw idTooLong(lengths[long], { file, rowGroup, row: firstRow + row + long, column });
    }
  } catch (error) {
    if (!(error instanceof PageProblem)) throw error;
  } finally {
    window.giveBack();
    kernel.giveBack();
  }
}

/** The lengths of plainly stored texts, as uint32: each text is stored after its length. */
export function textLengths(page: Uint8Array, values: number): Uint8Array {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const lengths = new Uint32Array(Math.min(values, page.length >> 2));
  let at = 0;
  for (let i = 0; i < lengths.length && at + 4 <= page.length; i++) {
    lengths[i] = view.getUint32(at, true);
    at += 4 + lengths[i];
  }
  if (at !== page.length) throw new Error(`a page of texts of ${page.length} bytes whose texts have ${at}`);
  return new Uint8Array(lengths.buffer);
}

export const timeUnits = {
  ms: TimeUnit.MILLISECOND,
  us: TimeUnit.MICROSECOND,
  ns: TimeUnit.NANOSECOND,
} as const;

/**
 * The file's columns in the decoder's types, if all columns are of common kinds and agree with the writer's
 * own types (if stored). Undefined for other files: then the decoder must read the schema. Loading it takes a
 * tenth of a second, which most files avoid.
 */
export function footerSchema({ schema, arrowSchema }: Footer): Schema | undefined {
  const fields = schema.map((element) => {
    const type = element.children > 0 || element.repetition === 'repeated' ? undefined : typeOf(element);
    return type && new Field(element.name, type, element.repetition === 'optional');
  });
  if (!fields.every((field) => field !== undefined)) return undefined;
  if (arrowSchema === undefined) return new Schema(fields);
  const written = writtenTypes(arrowSchema);
  return written?.length === fields.length &&
    fields.every(({ name, type }, i) => written[i].name === name && String(written[i].type) === String(type))
    ? new Schema(fields)
    : undefined;
}

/** True for a flat column of numbers whose stored bytes equal Arrow's. */
function storedAsIs({ schema }: Footer, name: string, type: DataType): boolean {
  // A name with a dot may also be the path of a nested column, so it is not accepted.
  const found = schema.filter((element) => element.name === name);
  if (found.length !== 1 || found[0].children > 0 || found[0].repetition === 'repeated' || name.includes('.'))
    return false;
  const stored = typeOf(found[0]);
  return (
    stored !== undefined &&
    String(stored) === String(type) &&
    (DataType.isInt(stored) || DataType.isFloat(stored) || DataType.isTimestamp(stored))
  );
}

function writtenTypes(arrowSchema: string): readonly Field[] | undefined {
  try {
    const message = Buffer.from(arrowSchema, 'base64');
    messageMetadata(message);
    return openIpc(message).schema.fields;
  } catch {
    return undefined;
  }
}

/** Types of columns without a converted or logical type. */
export const plainTypes: Partial<Record<string, DataType>> = {
  int32: new Int32(),
  int64: new Int64(),
  float: new Float32(),
  double: new Float64(),
  boolean: new Bool(),
  byte_array: new Binary(),
};

const signed: Partial<Record<string, string>> = { int32: 'INT_32', int64: 'INT_64' };

function typeOf({
  physicalType = '',
  convertedType,
  logicalType,
  timestamp,
  otherOrder,
}: SchemaElement): DataType | undefined {
  if (otherOrder) return undefined;
  if (convertedType === undefined && logicalType === undefined) return plainTypes[physicalType];
  if (physicalType === 'byte_array') return isText(convertedType, logicalType) ? new Utf8() : undefined;
  if (physicalType === 'int64' && logicalType === 'TIMESTAMP' && timestamp !== undefined)
    return new Timestamp(timeUnits[timestamp.unit], timestamp.utc ? 'UTC' : null);
  // Signed integers of the stored size, under any name that writers use.
  const isSigned = logicalType === undefined || logicalType === 'INTEGER';
  return isSigned && convertedType !== undefined && signed[physicalType] === convertedType
    ? plainTypes[physicalType]
    : undefined;
}

function isText(convertedType: string | undefined, logicalType: string | undefined): boolean {
  return convertedType === undefined ? logicalType === 'STRING' : convertedType === 'UTF8';
}
