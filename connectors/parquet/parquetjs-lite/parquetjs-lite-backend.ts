import {
  DataType,
  DateDay,
  Field,
  Int16,
  Int32,
  Int64,
  Int8,
  RecordBatch,
  Schema,
  Timestamp,
  TimeUnit,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
  type Data,
} from 'apache-arrow';
import type { FileHandle } from 'node:fs/promises';
import parquetjs from 'parquetjs-lite';
import type {
  ColumnChunkData,
  FieldDefinition,
  ParquetEnvelopeReader,
  ParquetReader,
  ParquetWriter,
} from 'parquetjs-lite';
import { DataError, FactorFlowError, UsageError } from '../../../engine/errors.ts';
import { closeReader } from '../../../engine/regular-file.ts';
import { batchOf } from '../../../engine/stream/whole-data.ts';
import { plainRows } from '../../../engine/values/plain-values.ts';
import { errorCode, fileProblem, messageOf } from '../../files/file-problem.ts';
import { isUrl } from '../../files/path-kinds.ts';
import { openRandomAccess, type RandomAccess, readExactly } from '../../files/random-access.ts';
import { appendAll, createFile } from '../../output/new-file.ts';
import { flatData } from '../../rows/row-column.ts';
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
import { readFooterOf, type ColumnChunkInfo, type SchemaElement } from '../footer.ts';
import { PageSums } from '../pages/page-sums.ts';
import { plainTypes, timeUnits } from '../parquet-wasm/parquet-wasm-backend.ts';
import { checkThriftShape } from '../thrift-shape.ts';
import { integerIn, readThrift, structIn } from '../write/thrift.ts';

/**
 * A second backend, in pure JavaScript. It reads flat columns in plain or old-style dictionary pages,
 * uncompressed, snappy or gzip. Data that the library would read wrongly (see `check` and `checkPages`)
 * are refused. Values are converted to the column's type one by one.
 */
export const parquetjsLiteBackend: ParquetBackend = {
  name: 'parquetjs-lite',
  async open(file) {
    if (isUrl(file))
      throw new UsageError('parquetjs-lite reads no URLs', {
        phase: 'read',
        file,
        advice: 'Use the parquet-wasm backend, or download the file first',
      });
    const handle = await openRandomAccess(file);
    try {
      const { fileBytes, rows, schema, rowGroups } = await readFooterOf(handle, file);
      return new LiteFileReader(handle, {
        file,
        bytes: fileBytes,
        rows,
        schema: flatSchema(schema, file),
        rowGroups,
      });
    } catch (error) {
      await closeReader(handle);
      throw fileProblem(error, 'read', file);
    }
  },
  create: (file, schema, options) => LiteFileWriter.create(file, schema, options),
};

const USE_OTHER = 'Use the backend parquet-wasm';

const readableCodecs = ['uncompressed', 'snappy', 'gzip'];
/**
 * Supported encodings of pages. "rle" and "bit_packed" are encodings of levels; the library throws if it
 * cannot read them.
 */
const readableEncodings = ['plain', 'plain_dictionary', 'rle', 'bit_packed'];
/**
 * Larger dictionaries are refused: for them the library adds the bytes of a repeated index instead of
 * shifting them.
 */
const LARGEST_DICTIONARY = 256;
const [plain, plainDictionary] = [0, 2];

class LiteFileReader implements ParquetFileReader {
  readonly info: ParquetFileInfo;
  readonly #handle: RandomAccess;
  #library: LibraryFile | undefined;

  constructor(handle: RandomAccess, info: ParquetFileInfo) {
    [this.#handle, this.info] = [handle, info];
  }

  async *read(options: ReadOptions): AsyncGenerator<LocatedBatch> {
    const { rowGroups } = this.info;
    const fields = this.info.schema.fields.filter(({ name }) => options.columns?.includes(name) ?? true);
    const schema = new Schema(fields);
    for (const rowGroup of options.rowGroups ?? rowGroups.keys()) {
      const { rows, firstRow } = rowGroups[rowGroup];
      const columns: Data[] = [];
      for (const field of fields) columns.push(await this.#readColumn(field, rowGroup));
      for (let start = 0; start < rows; start += options.batchSize) {
        const length = Math.min(options.batchSize, rows - start);
        const children = columns.map((column) => column.slice(start, length));
        const batch = batchOf(schema, length, children);
        yield { batch, rowGroup, firstRow: firstRow + start };
      }
    }
  }

  async close(): Promise<void> {
    await this.#library?.envelope.close();
    this.#library = undefined;
    await closeReader(this.#handle);
  }

  async #readColumn(field: Field, rowGroup: number): Promise<Data> {
    const { file, rowGroups } = this.info;
    const { columns, rows } = rowGroups[rowGroup];
    const number = columns.findIndex(({ column }) => column === field.name);
    const place = { file, rowGroup, column: field.name };
    try {
      await this.#check(columns[number], place);
      const { envelope, reader } = (this.#library ??= await openLibrary(file));
      const stored = reader.metadata.row_groups[rowGroup].columns[number];
      const data = await envelope.readColumnChunk(reader.getSchema(), stored);
      checkPages(data, columns[number], place);
      return columnData(field, data, rows, place);
    } catch (error) {
      throw problem(error, 'read', place);
    }
  }

  /** Refuses a column chunk before any of it is decoded. Verifies its pages' checksums: the library does not. */
  async #check({ start, bytes, codec, encodings }: ColumnChunkInfo, place: Place): Promise<void> {
    const odd = encodings.find((encoding) => !readableEncodings.includes(encoding));
    if (!readableCodecs.includes(codec)) throw refusal(`codec ${codec}`, place);
    if (odd !== undefined) throw refusal(`encoding ${odd}`, place);
    const stored = await readExactly(this.#handle, place.file, start, bytes);
    await new PageSums(place.file, this.#handle, this.info.rowGroups).check(stored, start);
    if (encodings.includes('plain_dictionary') && dictionarySize(stored) > LARGEST_DICTIONARY)
      throw refusal(`a dictionary of more than ${LARGEST_DICTIONARY} values`, place);
  }
}

/** The file as the library has opened it. */
interface LibraryFile {
  readonly envelope: ParquetEnvelopeReader;
  readonly reader: ParquetReader;
}

async function openLibrary(file: string): Promise<LibraryFile> {
  const envelope = await parquetjs.ParquetEnvelopeReader.openFile(file);
  const metadata = await envelope.readFooter();
  // The library accepts only version 1 in the footer. Pages may have either version, independently of the
  // footer; they are checked one by one.
  metadata.version = 1;
  return { envelope, reader: new parquetjs.ParquetReader(metadata, envelope, { rawStatistics: true }) };
}

interface Place {
  readonly file: string;
  readonly rowGroup: number;
  readonly column: string;
}

function refusal(what: string, place: Partial<Place>): DataError {
  const summary = `the backend parquetjs-lite cannot read ${what}`;
  return new DataError(summary, { phase: 'read', ...place, advice: USE_OTHER });
}

/**
 * Refuses pages that the library would misread: it trusts the footer's codec, and looks up values of plain
 * pages in a chunk's dictionary too.
 */
function checkPages(data: ColumnChunkData, chunk: ColumnChunkInfo, place: Place): void {
  const isPacked = data.pageHeaders.some((page) => page.compressed_page_size !== page.uncompressed_page_size);
  if (chunk.codec === 'uncompressed' && isPacked)
    throw new DataError('the data are damaged: pages are compressed, and the footer says that they are not', {
      phase: 'read',
      ...place,
    });
  const encodings = new Set(
    data.pageHeaders.map((page) => (page.data_page_header ?? page.data_page_header_v2)?.encoding),
  );
  const mixed =
    encodings.size > 1 ||
    (chunk.encodings.includes('plain_dictionary') && !encodings.has(plainDictionary) && encodings.size > 0);
  const unknown = [...encodings].find((encoding) => encoding !== plain && encoding !== plainDictionary);
  if (mixed) throw refusal('a column that begins with a dictionary and goes on without', place);
  if (unknown !== undefined) throw refusal(`pages of encoding number ${unknown}`, place);
}

/** Number of values in a chunk's dictionary page: PageHeader { 7: DictionaryPageHeader { 1: values } }. */
function dictionarySize(chunk: Uint8Array): number {
  const head = chunk.subarray(0, 1024);
  checkThriftShape(head);
  const { fields } = readThrift(head);
  return fields.has(7) ? (integerIn(structIn(fields, 7), 1) ?? 0) : 0;
}

/** An error that names the place. The library throws strings and errors of many kinds. */
function problem(
  error: unknown,
  phase: 'read' | 'write',
  place: Partial<Place> & { readonly file: string; readonly row?: number },
): Error {
  if (error instanceof FactorFlowError) return error;
  if (errorCode(error) !== undefined) return fileProblem(error, phase, place.file);
  const what = phase === 'read' ? 'the data' : 'the row';
  return new DataError(`parquetjs-lite cannot ${phase} ${what}: ${messageOf(error)}`, {
    phase,
    ...place,
    cause: error,
    advice: USE_OTHER,
  });
}

/** Types of integers by their converted type. */
const integerTypes: Partial<Record<string, DataType>> = {
  UINT_8: new Uint8(),
  UINT_16: new Uint16(),
  UINT_32: new Uint32(),
  UINT_64: new Uint64(),
  INT_8: new Int8(),
  INT_16: new Int16(),
  INT_32: new Int32(),
  INT_64: new Int64(),
  DATE: new DateDay(),
};
const textTypes = ['UTF8', 'ENUM', 'JSON'];

/**
 * The Arrow schema of a file of flat columns. Throws DataError for the first column that is not supported.
 */
function flatSchema(elements: readonly SchemaElement[], file: string): Schema {
  return new Schema(
    elements.map((element) => {
      const { name, children, repetition, physicalType } = element;
      const isNested = children > 0 || repetition === 'repeated';
      const type = isNested ? undefined : flatType(element);
      if (type !== undefined) return new Field(name, type, repetition === 'optional');
      const kind = isNested ? 'nested' : (physicalType ?? 'unknown');
      throw refusal(`columns of this kind (${kind})`, { file, column: name });
    }),
  );
}

function flatType({
  physicalType = '',
  convertedType,
  logicalType,
  timestamp,
}: SchemaElement): DataType | undefined {
  if (physicalType === 'int64' && timestamp !== undefined)
    return new Timestamp(timeUnits[timestamp.unit], timestamp.utc ? 'UTC' : null);
  if (convertedType === undefined && logicalType === undefined) return plainTypes[physicalType];
  if (physicalType === 'int32' || physicalType === 'int64') return integerTypes[convertedType ?? ''];
  if (physicalType !== 'byte_array') return undefined;
  return textTypes.includes(convertedType ?? '') || logicalType === 'STRING' ? new Utf8() : undefined;
}

/** One column of a row group as Arrow data. Throws DataError for a value of another kind. */
function columnData({ type, nullable }: Field, chunk: ColumnChunkData, rows: number, place: Place): Data {
  const highest = nullable ? 1 : 0;
  const broken = (summary: string) =>
    new DataError(`parquetjs-lite read the column wrongly: ${summary}`, {
      phase: 'read',
      ...place,
      advice: USE_OTHER,
    });
  const present = chunk.dlevels.reduce((sum, level) => sum + Number(level === highest), 0);
  if (chunk.dlevels.length !== rows) throw broken(`${chunk.dlevels.length} rows, need ${rows}`);
  if (chunk.values.length !== present) throw broken(`${chunk.values.length} values, need ${present}`);
  let next = 0;
  const values = Array.from(chunk.dlevels, (level) => {
    if (level !== highest) return undefined;
    const stored = chunk.values[next++];
    const value = converted(type, stored);
    if (value !== undefined) return value;
    const found = stored instanceof Uint8Array ? 'bytes' : `${typeof stored} ${String(stored)}`;
    throw broken(`${found} where the schema has ${String(type)}`);
  });
  return flatData(type, values);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Converts a stored value to the type; undefined for a value of another kind. The library returns numbers of
 * dictionary pages as strings, which are parsed exactly, and unsigned integers as signed numbers of the same bits,
 * which typed arrays convert back.
 */
function converted(type: DataType, stored: unknown): unknown {
  const isText = typeof stored === 'string';
  if (DataType.isUtf8(type)) return toText(stored);
  // The library returns bytes of a dictionary page as text, which may have lost some of them.
  if (DataType.isBinary(type)) return stored instanceof Uint8Array ? stored : undefined;
  if (DataType.isBool(type)) return typeof stored === 'boolean' ? stored : undefined;
  if (type.ArrayType === BigInt64Array || type.ArrayType === BigUint64Array) {
    if (isText && /^-?\d+$/.test(stored)) return BigInt(stored);
    return typeof stored === 'bigint' ? stored : undefined;
  }
  const number = isText && stored !== '' ? Number(stored) : stored;
  if (DataType.isFloat(type)) {
    const isWrong = isText && Number.isNaN(number) && stored !== 'NaN';
    return typeof number === 'number' && !isWrong ? number : undefined;
  }
  return Number.isInteger(number) ? number : undefined;
}

function toText(stored: unknown): string | undefined {
  // U+FFFD in text from a dictionary page may mean that bytes were lost.
  if (typeof stored === 'string') return stored.includes('\uFFFD') ? undefined : stored;
  try {
    return stored instanceof Uint8Array ? utf8.decode(stored) : undefined;
  } catch {
    return undefined;
  }
}

const writableCodecs: Partial<Record<string, string>> = {
  uncompressed: 'UNCOMPRESSED',
  snappy: 'SNAPPY',
  gzip: 'GZIP',
};
/** Smaller than usual, since the library keeps a row group as JavaScript values. */
const LARGEST_ROW_GROUP = 1 << 16;

function definition({ name, type, nullable }: Field, { codec }: WriteOptions): FieldDefinition {
  const compression = writableCodecs[codec];
  if (compression === undefined)
    throw new UsageError(`the backend parquetjs-lite cannot write codec ${codec}`, {
      phase: 'write',
      advice: `Use one of: ${Object.keys(writableCodecs).join(', ')}`,
    });
  const stored = storedType(type);
  if (stored === undefined)
    throw new UsageError(`the backend parquetjs-lite cannot write columns of ${String(type)}`, {
      phase: 'write',
      column: name,
      advice: USE_OTHER,
    });
  return { type: stored, optional: nullable, compression, statistics: false };
}

function storedType(type: DataType): string | undefined {
  if (DataType.isInt(type)) {
    if (!type.isSigned) return type.bitWidth < 64 ? `UINT_${type.bitWidth}` : undefined;
    return type.bitWidth < 32 ? `INT_${type.bitWidth}` : `INT${type.bitWidth}`;
  }
  if (DataType.isFloat(type)) return [undefined, 'FLOAT', 'DOUBLE'][type.precision];
  if (DataType.isTimestamp(type) && type.unit === TimeUnit.MILLISECOND && type.timezone === 'UTC')
    return 'TIMESTAMP_MILLIS';
  return DataType.isUtf8(type) ? 'UTF8' : DataType.isBool(type) ? 'BOOLEAN' : undefined;
}

/** Writes flat columns, row by row: about 0.2 million rows a second. */
class LiteFileWriter implements ParquetFileWriter {
  readonly #file: string;
  readonly #handle: FileHandle;
  #writer: ParquetWriter | undefined;
  #rows = 0;
  #bytes = 0;
  /**
   * The writes so far. The library does not await all writes, so none of them rejects; the first failure is
   * kept.
   */
  #written: Promise<void> = Promise.resolve();
  #failure: unknown;
  #closed = false;

  private constructor(file: string, handle: FileHandle) {
    [this.#file, this.#handle] = [file, handle];
  }

  static async create(file: string, { fields }: Schema, options: WriteOptions): Promise<LiteFileWriter> {
    const schema = new parquetjs.ParquetSchema(
      Object.fromEntries(fields.map((field) => [field.name, definition(field, options)])),
    );
    const made = new LiteFileWriter(file, await createFile(file));
    const stream = {
      write: (bytes: Uint8Array, done: () => void) => made.#append(bytes, done),
      end: (done: () => void) => void made.abort().then(done, done),
    };
    const rowGroupSize = Math.min(options.rowGroupSize, LARGEST_ROW_GROUP);
    const settings = { rowGroupSize, useDataPageV2: false, pageIndex: false };
    made.#writer = await parquetjs.ParquetWriter.openStream(schema, stream, settings);
    return made;
  }

  async write(batch: RecordBatch): Promise<void> {
    const rowAt = plainRows(batch.schema, batch.data.children);
    for (let row = 0; row < batch.numRows; row++) {
      const record = rowAt(row);
      for (const { name, type } of batch.schema.fields) {
        const value = record[name];
        if (typeof value === 'bigint') record[name] = this.#number(name, type, value);
      }
      await this.#guard(this.#writer?.appendRow(record));
      this.#rows++;
    }
  }

  async close(): Promise<WrittenFile> {
    await this.#guard(this.#writer?.close());
    return { rows: this.#rows, bytes: this.#bytes };
  }

  async abort(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#written;
    await this.#handle.close();
  }

  async #guard(work: Promise<void> | undefined): Promise<void> {
    try {
      await work;
      if (this.#failure !== undefined) throw this.#failure;
    } catch (error) {
      throw problem(error, 'write', { file: this.#file, row: this.#rows });
    }
  }

  #append(bytes: Uint8Array, done: () => void): void {
    this.#bytes += bytes.length;
    this.#written = this.#written
      .then(async () => {
        if (this.#failure === undefined) await appendAll(this.#handle, [bytes]);
      })
      .catch((error: unknown) => void (this.#failure = error))
      .then(done);
  }

  /**
   * Converts a value for the library. It would silently round 64-bit integers beyond 2^53, so they are
   * refused.
   */
  #number(column: string, type: DataType, value: bigint): number {
    if (DataType.isInt(type) && type.bitWidth === 64 && !Number.isSafeInteger(Number(value)))
      throw new DataError(`the backend parquetjs-lite cannot write the integer ${value}, beyond 2^53`, {
        phase: 'write',
        file: this.#file,
        row: this.#rows,
        column,
        advice: USE_OTHER,
      });
    return Number(value);
  }
}
