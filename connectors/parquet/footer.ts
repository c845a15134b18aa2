import type { ThriftStruct, ThriftValue } from './thrift.ts';

/** Smallest and largest value that a footer tells for one column of one row group; only for signed integers and floats. */
export interface ColumnStatistics {
  readonly min?: number | bigint;
  readonly max?: number | bigint;
  readonly nulls?: number;
}

export interface ColumnChunkInfo {
  /** The path joined with "."; a flat column's name. */
  readonly column: string;
  readonly codec: string;
  readonly encodings: readonly string[];
  /** Where the first page begins (the dictionary, if there is one), and bytes as stored. */
  readonly start: number;
  readonly bytes: number;
  readonly statistics: ColumnStatistics;
}

export interface RowGroupInfo {
  readonly rows: number;
  /** Row of the file that is the group's row 0. */
  readonly firstRow: number;
  readonly columns: readonly ColumnChunkInfo[];
}

/** One element of the schema as stored: a depth-first walk of the tree, the root left out. */
export interface SchemaElement {
  readonly name: string;
  readonly physicalType?: string;
  readonly repetition: 'required' | 'optional' | 'repeated';
  readonly children: number;
  readonly convertedType?: number;
  readonly logicalType?: number;
  /** The stored integers are unsigned or decimals: their order is not that of the signed number. */
  readonly otherOrder: boolean;
  readonly timestamp?: { readonly unit: 'ms' | 'us' | 'ns'; readonly utc: boolean };
}

/** What the end of a Parquet file says about the rest. */
export interface Footer {
  readonly fileBytes: number;
  /** Version 1 or 2 of the footer, which says little about the pages. */
  readonly version: number;
  readonly rows: number;
  readonly schema: readonly SchemaElement[];
  readonly rowGroups: readonly RowGroupInfo[];
}

export const codecNames = ['uncompressed', 'snappy', 'gzip', 'lzo', 'brotli', 'lz4', 'zstd', 'lz4_raw'] as const;
const physicalTypes = ['boolean', 'int32', 'int64', 'int96', 'float', 'double', 'byte_array', 'fixed_len_byte_array'];
const encodingNames = ['plain', '', 'plain_dictionary', 'rle', 'bit_packed', 'delta_binary_packed', 'delta_length_byte_array', 'delta_byte_array', 'rle_dictionary', 'byte_stream_split'];
const repetitions = ['required', 'optional', 'repeated'] as const;

/** A footer that is damaged or describes a file that cannot be read here. */
export class FooterProblem extends Error {
  readonly advice: string | undefined;
  constructor(message: string, advice?: string) {
    super(message);
    this.advice = advice;
  }
}

/**
 * The footer's thrift struct as our description; a pure function. Checks that every column chunk lies inside the file.
 * Throws FooterProblem, or RangeError where something else stands than the format says.
 */
export function decodeFooter(footer: ThriftStruct, fileBytes: number): Footer {
  if (footer.has(8)) throw new FooterProblem('the file has encrypted columns, which is not supported', 'Decrypt it first');
  const elements = structs(footer.get(2)).slice(1).map(schemaElement);
  if (elements.length === 0) throw new FooterProblem('the Parquet file has no columns');
  const leaves = elements.filter((element) => element.children === 0);
  let firstRow = 0;
  const rowGroups = structs(footer.get(4)).map((group, index): RowGroupInfo => {
    const rows = count(group.get(3));
    const columns = structs(group.get(1)).map((chunk, column) => columnChunk(chunk, leaves[column], index, fileBytes));
    firstRow += rows;
    return { rows, firstRow: firstRow - rows, columns };
  });
  const rows = count(footer.get(3));
  if (rows !== firstRow) throw new FooterProblem(`the Parquet file's footer is damaged: ${rows} rows in all, ${firstRow} in its row groups`);
  return { fileBytes, version: count(footer.get(1)), rows, schema: elements, rowGroups };
}

function schemaElement(element: ThriftStruct): SchemaElement {
  const type = element.get(1);
  const logical = element.get(10);
  return {
    name: text(element.get(4)),
    physicalType: typeof type === 'number' ? physicalTypes[type] : undefined,
    repetition: repetitions[Number(element.get(3) ?? 0)] ?? 'required',
    children: Number(element.get(5) ?? 0),
    convertedType: typeof element.get(6) === 'number' ? Number(element.get(6)) : undefined,
    logicalType: logical instanceof Map ? [...logical.keys()][0] : undefined,
    timestamp: timestampOf(Number(element.get(6) ?? -1), logical),
    otherOrder: hasOtherOrder(Number(element.get(6) ?? -1), logical),
  };
}

/** Converted types 9 and 10 are TIMESTAMP_MILLIS and _MICROS; logical type 8 is TIMESTAMP { 1: UTC, 2: unit }. */
function timestampOf(convertedType: number, logical: ThriftValue | undefined): SchemaElement['timestamp'] {
  const timestamp = logical instanceof Map ? logical.get(8) : undefined;
  if (timestamp instanceof Map) {
    const unit = timestamp.get(2);
    const name = (['ms', 'us', 'ns'] as const)[Number(unit instanceof Map ? [...unit.keys()][0] : 0) - 1];
    return name === undefined ? undefined : { unit: name, utc: timestamp.get(1) === true };
  }
  return convertedType === 9 ? { unit: 'ms', utc: true } : convertedType === 10 ? { unit: 'us', utc: true } : undefined;
}

/** Converted types 11..14 are UINT_8..UINT_64, 5 is DECIMAL; logical type 10 is INTEGER { 2: signed }, 5 is DECIMAL. */
function hasOtherOrder(convertedType: number, logical: ThriftValue | undefined): boolean {
  if (convertedType === 5 || (convertedType >= 11 && convertedType <= 14)) return true;
  if (!(logical instanceof Map)) return false;
  const integer = logical.get(10);
  return logical.has(5) || (integer instanceof Map && integer.get(2) === false);
}

function columnChunk(chunk: ThriftStruct, leaf: SchemaElement | undefined, rowGroup: number, fileBytes: number): ColumnChunkInfo {
  if (chunk.has(8) || chunk.has(9)) throw new FooterProblem('the file has encrypted columns, which is not supported', 'Decrypt it first');
  if (chunk.has(1) && text(chunk.get(1)) !== '') throw new FooterProblem(`the file keeps row group ${rowGroup} in another file, which is not supported`);
  const meta = chunk.get(3);
  if (!(meta instanceof Map)) throw new FooterProblem(`the Parquet file's footer is damaged: no metadata for a column of row group ${rowGroup}`);
  const column = list(meta.get(3)).map(text).join('.');
  const bytes = count(meta.get(7));
  const start = Math.min(...[meta.get(9), meta.get(11)].filter((offset) => offset !== undefined && offset !== 0).map(count));
  if (start + bytes > fileBytes || start < 4) {
    throw new FooterProblem(`the Parquet file is damaged or cut off: column "${column}" of row group ${rowGroup} would lie at ${start}..${start + bytes}, and the file has ${fileBytes} bytes`);
  }
  return {
    column,
    codec: codecNames[Number(meta.get(4))] ?? `codec ${meta.get(4)}`,
    encodings: list(meta.get(2)).map((encoding) => encodingNames[Number(encoding)] ?? `encoding ${encoding}`),
    start,
    bytes,
    statistics: leaf === undefined || leaf.otherOrder ? {} : columnStatistics(meta.get(12), leaf.physicalType ?? ''),
  };
}

function columnStatistics(statistics: ThriftValue | undefined, type: string): ColumnStatistics {
  if (!(statistics instanceof Map)) return {};
  const nulls = statistics.get(3);
  return {
    min: plainNumber(statistics.get(6) ?? statistics.get(2), type),
    max: plainNumber(statistics.get(5) ?? statistics.get(1), type),
    nulls: typeof nulls === 'number' ? nulls : undefined,
  };
}

function plainNumber(bytes: ThriftValue | undefined, type: string): number | bigint | undefined {
  if (!(bytes instanceof Uint8Array)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (type === 'int32' && bytes.length === 4) return view.getInt32(0, true);
  if (type === 'int64' && bytes.length === 8) return view.getBigInt64(0, true);
  const value = type === 'float' && bytes.length === 4 ? view.getFloat32(0, true) : type === 'double' && bytes.length === 8 ? view.getFloat64(0, true) : Number.NaN;
  return Number.isNaN(value) ? undefined : value;
}

function list(value: ThriftValue | undefined): ThriftValue[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new RangeError('a list was expected');
  return value;
}

function structs(value: ThriftValue | undefined): ThriftStruct[] {
  return list(value).map((element) => {
    if (!(element instanceof Map)) throw new RangeError('a struct was expected');
    return element;
  });
}

function count(value: ThriftValue | undefined): number {
  if (typeof value !== 'number' || value < 0) throw new RangeError(`a count was expected, not ${String(value)}`);
  return value;
}

function text(value: ThriftValue | undefined): string {
  if (!(value instanceof Uint8Array)) throw new RangeError('a name was expected');
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8');
}
