import type {
  ColumnChunk,
  ConvertedType,
  FileMetaData,
  LogicalType,
  SchemaElement as StoredElement,
  Statistics,
} from 'hyparquet';
import { parquetMetadata } from 'hyparquet/src/metadata.js';
import { DataError } from '../../engine/errors.ts';
import { counted, formatBytes } from '../../engine/format.ts';
import { closeReader } from '../../engine/regular-file.ts';
import { messageOf, fileProblem } from '../files/file-problem.ts';
import { openRandomAccess, type RandomAccess, readExactly } from '../files/random-access.ts';
import { checkThriftShape } from './thrift-shape.ts';

/**
 * Smallest and largest value of a column in a row group, from the footer; only for signed integers and
 * floats.
 */
export interface ColumnStatistics {
  readonly min?: number | bigint;
  readonly max?: number | bigint;
  /** Number of nulls. Undefined for a 0 of an old writer, which may not have counted. */
  readonly nulls?: number;
}

export interface ColumnChunkInfo {
  /** Path joined with "."; for a flat column its name. */
  readonly column: string;
  /** Physical type: 'int32', 'double', ... */
  readonly type: string | undefined;
  /** Unit of timestamps, also in their statistics. */
  readonly timeUnit?: 'ms' | 'us' | 'ns';
  readonly codec: string;
  readonly encodings: readonly string[];
  /** Position of the first page (of the dictionary, if there is one), and the number of stored bytes. */
  readonly start: number;
  readonly bytes: number;
  /** Bytes of its pages, uncompressed. */
  readonly unpackedBytes: number;
  /**
   * Bytes of the texts of all rows, if the writer counted them; a text from a dictionary counts for each row.
   */
  readonly textBytes?: number;
  readonly statistics: ColumnStatistics;
  readonly pageIndex?: PageIndexPlace;
}

export interface RowGroupInfo {
  readonly rows: number;
  /** Number in the file of the group's first row. */
  readonly firstRow: number;
  readonly columns: readonly ColumnChunkInfo[];
}

/** An element of the stored schema. The elements are a tree in depth-first order, without its root. */
export interface SchemaElement {
  readonly name: string;
  readonly physicalType?: string;
  readonly repetition: 'required' | 'optional' | 'repeated';
  readonly children: number;
  readonly convertedType?: ConvertedType;
  readonly logicalType?: LogicalType['type'] | 'unknown';
  /**
   * True if the stored integers are unsigned or decimals, whose order differs from signed integers.
   */
  readonly otherOrder: boolean;
  readonly timestamp?: { readonly unit: 'ms' | 'us' | 'ns'; readonly utc: boolean };
}

/** Contents of the footer at the end of a Parquet file. */
export interface Footer {
  readonly fileBytes: number;
  /** Version 1 or 2 of the footer; pages may have the other version. */
  readonly version: number;
  readonly rows: number;
  readonly schema: readonly SchemaElement[];
  readonly rowGroups: readonly RowGroupInfo[];
  /** Base64 of the writer's Arrow schema, if it stored one. */
  readonly arrowSchema?: string;
}

/** A footer that is damaged, or of a file that is not supported. */
export class FooterProblem extends Error {
  readonly advice: string | undefined;
  constructor(message: string, advice?: string) {
    super(message);
    this.advice = advice;
  }
}

/** The magic bytes at the beginning of a file. */
const MAGIC_BYTES = 4;

function damaged(what: string): FooterProblem {
  return new FooterProblem(`the Parquet file's footer is damaged: ${what}`);
}

/** Parsers that keep statistics as stored numbers, and drop the statistics of text. */
const storedNumbers = {
  dateFromDays: (value: number) => value,
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  stringFromBytes: () => undefined,
  uuidFromBytes: () => undefined,
};

/**
 * Decodes a footer. A pure function of the file's last bytes (the footer's struct, its length, "PAR1").
 * Checks that every column chunk is inside the file. Throws FooterProblem.
 */
export function decodeFooter(tail: Uint8Array, fileBytes: number): Footer {
  try {
    checkThriftShape(tail.subarray(0, -8));
    return describe(parquetMetadata(tail, { parsers: storedNumbers, geoparquet: false }), fileBytes);
  } catch (error) {
    if (error instanceof FooterProblem) throw error;
    // For bytes that are well formed but make no sense, the library throws errors of all kinds, or returns
    // values of wrong types that fail later.
    throw damaged(messageOf(error));
  }
}

function describe(
  { version, num_rows, schema, row_groups, key_value_metadata }: FileMetaData,
  fileBytes: number,
): Footer {
  const elements = schema.slice(1).map(schemaElement);
  if (elements.length === 0) throw new FooterProblem('the Parquet file has no columns');
  const leaves = leavesOf(elements);
  let firstRow = 0;
  const rowGroups = row_groups.map((group, index): RowGroupInfo => {
    const rows = count(group.num_rows);
    if (group.columns.length !== leaves.length)
      throw damaged(
        `row group ${index} has ${counted(group.columns.length, 'column')}, and the schema ${leaves.length}`,
      );
    const columns = group.columns.map((chunk, column) =>
      columnChunk(chunk, leaves[column], index, fileBytes),
    );
    firstRow += rows;
    return { rows, firstRow: firstRow - rows, columns };
  });
  const rows = count(num_rows);
  if (rows !== firstRow) throw damaged(`${counted(rows, 'row')} in all, ${firstRow} in its row groups`);
  const arrowSchema = key_value_metadata?.find(({ key }) => key === 'ARROW:schema')?.value;
  return {
    fileBytes,
    version: count(version),
    rows,
    schema: elements,
    rowGroups,
    ...(arrowSchema !== undefined && { arrowSchema }),
  };
}

interface Leaf {
  readonly path: string;
  readonly element: SchemaElement;
}

/**
 * The columns that have values (leaves of the schema's tree), each with the names of the groups that contain
 * it.
 */
function leavesOf(elements: readonly SchemaElement[]): Leaf[] {
  const groups: { readonly path: string; left: number }[] = [];
  return elements.flatMap((element) => {
    const parent = groups.at(-1);
    const path = parent === undefined ? element.name : `${parent.path}.${element.name}`;
    if (parent !== undefined) parent.left--;
    if (element.children > 0) groups.push({ path, left: element.children });
    while (groups.at(-1)?.left === 0) groups.pop();
    return element.children > 0 ? [] : [{ path, element }];
  });
}

function schemaElement(element: StoredElement): SchemaElement {
  const { name, type, repetition_type, num_children, converted_type, logical_type } = element;
  if (typeof name !== 'string') throw damaged('a column has no name');
  return {
    name,
    physicalType: type && lower(type),
    repetition: lower(repetition_type ?? 'REQUIRED'),
    children: num_children ?? 0,
    convertedType: converted_type,
    // A logical type that the library does not know yet is read as its stored type.
    logicalType: logical_type && (logical_type.type ?? 'unknown'),
    timestamp: timestampOf(element),
    otherOrder: hasOtherOrder(element),
  };
}

function timestampOf({ converted_type, logical_type }: StoredElement): SchemaElement['timestamp'] {
  if (logical_type?.type === 'TIMESTAMP')
    return {
      unit: ({ MILLIS: 'ms', MICROS: 'us', NANOS: 'ns' } as const)[logical_type.unit],
      utc: logical_type.isAdjustedToUTC,
    };
  return converted_type === 'TIMESTAMP_MILLIS'
    ? { unit: 'ms', utc: true }
    : converted_type === 'TIMESTAMP_MICROS'
      ? { unit: 'us', utc: true }
      : undefined;
}

function hasOtherOrder({ converted_type, logical_type }: StoredElement): boolean {
  if (converted_type === 'DECIMAL' || logical_type?.type === 'DECIMAL') return true;
  return (
    (converted_type?.startsWith('UINT_') ?? false) ||
    (logical_type?.type === 'INTEGER' && !logical_type.isSigned)
  );
}

function columnChunk(
  chunk: ColumnChunk,
  { path, element }: Leaf,
  rowGroup: number,
  fileBytes: number,
): ColumnChunkInfo {
  const { meta_data, file_path, crypto_metadata, encrypted_column_metadata } = chunk;
  if (crypto_metadata || encrypted_column_metadata)
    throw new FooterProblem('the file has encrypted columns, which is not supported', 'Decrypt it first');
  if (file_path)
    throw new FooterProblem(`the file keeps row group ${rowGroup} in another file, which is not supported`);
  if (!meta_data) throw damaged(`no metadata for a column of row group ${rowGroup}`);
  const column = meta_data.path_in_schema.join('.');
  // The name is stored twice; if the two differ, the footer is damaged.
  if (column !== path)
    throw damaged(`a column is called "${path}" in the schema and "${column}" in row group ${rowGroup}`);
  if (lower(meta_data.type) !== element.physicalType)
    throw damaged(
      `column "${column}" is ${element.physicalType} in the schema and ${lower(meta_data.type)} in ` +
        `row group ${rowGroup}`,
    );
  const bytes = count(meta_data.total_compressed_size);
  const offsets = [meta_data.data_page_offset, meta_data.dictionary_page_offset]
    .filter((offset) => offset)
    .map(count);
  if (offsets.length === 0 && bytes > 0)
    throw damaged(`column "${column}" of row group ${rowGroup} has ${counted(bytes, 'byte')} and no offset`);
  // A column of a row group without rows may have no pages, and then no position.
  const start = offsets.length === 0 ? MAGIC_BYTES : Math.min(...offsets);
  if (start + bytes > fileBytes || start < MAGIC_BYTES) {
    throw new FooterProblem(
      `the Parquet file is damaged or cut off: column "${column}" of row group ${rowGroup} would be ` +
        `at ${start}..${start + bytes}, and the file has ${fileBytes} bytes`,
    );
  }
  const pageIndex = pageIndexPlace(chunk, isOrdered(element), fileBytes);
  return {
    column,
    type: element.physicalType,
    ...timeUnitOf(element),
    codec: lower(meta_data.codec ?? 'unknown'),
    encodings: meta_data.encodings.map((encoding) => lower(encoding ?? 'unknown')),
    start,
    bytes,
    unpackedBytes: count(meta_data.total_uncompressed_size),
    ...textBytes(meta_data.size_statistics?.unencoded_byte_array_data_bytes),
    statistics: columnStatistics(chunk, element),
    ...(pageIndex && { pageIndex }),
  };
}

function timeUnitOf({ timestamp }: SchemaElement): Pick<ColumnChunkInfo, 'timeUnit'> {
  return timestamp ? { timeUnit: timestamp.unit } : {};
}

function textBytes(stored: bigint | undefined): { readonly textBytes?: number } {
  return stored === undefined ? {} : { textBytes: count(stored) };
}

const orderedTypes = ['int32', 'int64', 'float', 'double'];

/** True for columns whose minimum and maximum are known as numbers. */
function isOrdered({ physicalType, otherOrder }: SchemaElement): boolean {
  return !otherOrder && orderedTypes.includes(physicalType ?? '');
}

function columnStatistics(
  { meta_data, column_index_offset }: ColumnChunk,
  element: SchemaElement,
): ColumnStatistics {
  const { null_count } = meta_data?.statistics ?? {};
  const nulls = null_count === undefined ? undefined : count(null_count);
  // Writers of page indexes count nulls; some older ones store 0 for all columns.
  const isCounted = nulls !== 0 || column_index_offset !== undefined || element.repetition === 'required';
  return { ...boundsIn(meta_data?.statistics, element), ...(isCounted && { nulls }) };
}

function boundsIn(
  statistics: Statistics | undefined,
  element: SchemaElement,
): Pick<ColumnStatistics, 'min' | 'max'> {
  if (!statistics || element.otherOrder) return {};
  const { min, max, min_value, max_value } = statistics;
  const bound = (value: unknown) => (isOrdered(element) ? storedNumber(value) : undefined);
  return {
    min: bound(min_value ?? min),
    max: bound(max_value ?? max),
  };
}

function count(value: bigint | number | undefined): number {
  const number = typeof value === 'bigint' ? Number(value) : value;
  if (!Number.isSafeInteger(number) || number! < 0)
    throw new RangeError(`a count was expected, not ${String(value)}`);
  return number!;
}

function lower<T extends string>(name: T): Lowercase<T> {
  return name.toLowerCase() as Lowercase<T>;
}

/** Position in the file of one column chunk's page index. */
export interface PageIndexPlace {
  /** Column index (minimum and maximum); absent if the stored order is not numeric order. */
  readonly values?: PageIndexPlace['pages'];
  /** Offset index: positions and first rows. */
  readonly pages: { readonly at: number; readonly bytes: number };
}

/** Largest index to read; reading a larger one would cost more than it saves. */
const MOST_BYTES = 16 << 20;

/** Where the footer says that a column chunk's page index is; undefined without a usable index. */
function pageIndexPlace(
  chunk: ColumnChunk,
  hasOrder: boolean,
  fileBytes: number,
): PageIndexPlace | undefined {
  const span = (offset: bigint | undefined, length: number | undefined) => {
    const [at, bytes] = [Number(offset ?? 0), length ?? 0];
    return at > 0 && bytes > 0 && bytes <= MOST_BYTES && at + bytes <= fileBytes ? { at, bytes } : undefined;
  };
  const pages = span(chunk.offset_index_offset, chunk.offset_index_length);
  const values = hasOrder ? span(chunk.column_index_offset, chunk.column_index_length) : undefined;
  return pages && { pages, ...(values && { values }) };
}

/** A number from statistics; undefined for NaN, and for bytes that are not a number of the column's type. */
export function storedNumber(value: unknown): number | bigint | undefined {
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' && !Number.isNaN(value) ? value : undefined;
}

/** Most bytes of a footer, far more than writers make: its length in a damaged file can be up to 4 GiB. */
const FOOTER_BYTES = 2 ** 30;

/** A larger footer is not kept. */
const KEPT_BYTES = 1 << 22;

/**
 * The last footer of this thread, whose tasks read one row group of a file after another. To decode it for
 * each of them takes quadratic time.
 */
let last: { readonly bytes: Uint8Array; readonly footer: Footer } | undefined;

/** Decodes a footer, or returns the last one if it has the same bytes in a file of the same size. */
function decodedFooter(bytes: Uint8Array, size: number): Footer {
  if (last?.footer.fileBytes === size && Buffer.compare(last.bytes, bytes) === 0) return last.footer;
  const footer = decodeFooter(bytes, size);
  last = bytes.length <= KEPT_BYTES ? { bytes, footer } : undefined;
  return footer;
}

/**
 * Reads and checks a file's footer, without reading data: magic bytes, lengths, encryption, and that every
 * column chunk is inside the file. Throws DataError that names the file.
 */
export async function readFooter(file: string): Promise<Footer> {
  let handle: RandomAccess | undefined;
  try {
    handle = await openRandomAccess(file);
    return await readFooterOf(handle, file);
  } catch (error) {
    throw fileProblem(error, 'read', file);
  } finally {
    await closeReader(handle);
  }
}

/** Reads and checks the footer of an open file. */
export async function readFooterOf(handle: RandomAccess, file: string): Promise<Footer> {
  const broken = (summary: string, advice?: string) =>
    new DataError(summary, { phase: 'read', file, advice });
  const { size } = await handle.stat();
  if (size === 0) throw broken('the file is empty (0 bytes), not even a Parquet footer');
  if (size < 12) throw broken(`not a Parquet file: ${size} bytes, need 12 at least`);
  const tail = await readExactly(handle, file, size - 8, 8);
  const magic = Buffer.from(tail.buffer, tail.byteOffset + 4, 4).toString('latin1');
  if (magic === 'PARE') throw broken('the file is encrypted, which is not supported', 'Decrypt it first');
  if (magic !== 'PAR1') {
    const start = await readExactly(handle, file, 0, 4);
    if (Buffer.from(start).toString('latin1') === 'PAR1')
      throw broken(
        'the Parquet file is cut off: it starts well, but its footer is missing',
        'Write or copy it again',
      );
    throw broken('not a Parquet file: it does not end with "PAR1"');
  }
  const length = new DataView(tail.buffer, tail.byteOffset).getUint32(0, true);
  if (length > size - 12)
    throw broken(`the Parquet file is damaged: a footer of ${length} bytes in a file of ${size}`);
  if (length > FOOTER_BYTES)
    throw broken(
      `a footer of ${formatBytes(length)} is too large: ${formatBytes(FOOTER_BYTES)} are allowed`,
      'Write the file again, with larger row groups or in several files',
    );
  const bytes = await readExactly(handle, file, size - 8 - length, length + 8);
  try {
    return decodedFooter(bytes, size);
  } catch (error) {
    if (error instanceof FooterProblem) throw broken(error.message, error.advice);
    throw error;
  }
}
