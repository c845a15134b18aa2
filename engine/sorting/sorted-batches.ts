import {
  Data,
  makeData,
  RecordBatch,
  type Schema,
  Struct,
  type TypeMap,
  DataType,
  type Vector,
} from 'apache-arrow';
import { joinData, joinDictionaries } from '../stream/join-data.ts';
import { bytesOfBits, takeData } from '../stream/take-data.ts';
import { type SortKey, SortKeys } from './sort-keys.ts';
import { positionsOf, sortInBands, type Bands, type BandValues } from './sort-rows.ts';

/** Most rows of a batch of the result. */
const BATCH_ROWS = 1 << 16;

/** A column, and its row numbers in sorted order. */
interface OrderedColumn {
  readonly data: Data;
  readonly positions: Uint32Array;
}

/**
 * The rows of batches in stable sorted order, in batches of 65,536 rows. All rows are in memory twice,
 * except that `batches` is emptied, so the given batches may be freed meanwhile. `most`: return only this
 * number of first rows.
 */
export function* sortedBatches(
  schema: Schema,
  batches: RecordBatch[],
  keys: readonly SortKey[],
  most = Infinity,
): Generator<RecordBatch> {
  const rows = batches.reduce((sum, { numRows }) => sum + numRows, 0);
  if (rows === 0) return;
  const columns = orderedColumns(schema, batches, keys);
  const type = new Struct<TypeMap>(schema.fields);
  const end = Math.min(rows, most);
  for (let from = 0; from < end; from += BATCH_ROWS) {
    const to = Math.min(from + BATCH_ROWS, end);
    const children = columns.map(({ data, positions }) => takeData(data, positions.subarray(from, to)));
    yield new RecordBatch(schema, makeData({ type, length: to - from, nullCount: 0, children }));
  }
}

function orderedColumns(schema: Schema, batches: RecordBatch[], keys: readonly SortKey[]): OrderedColumn[] {
  const chunks = schema.fields.map((_, i) => batches.map(({ data }) => data.children[i]));
  const rows = batches.reduce((sum, { numRows }) => sum + numRows, 0);
  batches.length = 0;
  const sorted = sortInBands(new SortKeys(schema, keys).ofChunks(chunks, rows));
  let positions: Uint32Array | undefined;
  return chunks.map((own) => {
    const placed = placeData(own, sorted.bands);
    const data = placed ?? joinData(own[0].type, own);
    own.length = 0;
    if (placed !== undefined) return { data, positions: sorted.places };
    return { data, positions: (positions ??= positionsOf(sorted)) };
  });
}

/**
 * Joins a column's chunks, with each row at its position in the bands. Undefined if values have no fixed
 * width.
 */
function placeData(chunks: readonly Data[], bands: Bands): Data | undefined {
  const [{ type, stride }] = chunks;
  if (DataType.isDictionary(type)) {
    const { codes, dictionary } = joinDictionaries(chunks);
    return placed(chunks, bands, placeValues(codes, 1, bands), dictionary);
  }
  if (DataType.isBool(type))
    return placed(
      chunks,
      bands,
      bands.placeBits(bytesOfRows(chunks, bands.rows, ({ values }) => values as Uint8Array)),
    );
  const isPlain =
    DataType.isInt(type) ||
    DataType.isFloat(type) ||
    DataType.isDecimal(type) ||
    DataType.isDate(type) ||
    DataType.isTimestamp(type) ||
    DataType.isTime(type) ||
    DataType.isDuration(type);
  if (!isPlain) return undefined;
  const values = chunks.map((data) => (data.values as Int32Array).subarray(0, data.length * stride));
  return placed(chunks, bands, placeValues(values, stride, bands));
}

function placed(chunks: readonly Data[], bands: Bands, values: ArrayBufferView, dictionary?: Vector): Data {
  const nullCount = chunks.reduce((sum, data) => sum + data.nullCount, 0);
  const validOf = (data: Data) => (data.nullCount === 0 ? undefined : data.nullBitmap);
  const bitmap = nullCount === 0 ? undefined : bands.placeBits(bytesOfRows(chunks, bands.rows, validOf));
  return new Data(
    chunks[0].type,
    0,
    bands.rows,
    nullCount,
    { 1: values, 2: bitmap } as never,
    undefined,
    dictionary,
  );
}

function placeValues(chunks: readonly Int32Array[], stride: number, bands: Bands): ArrayBufferView {
  const { BYTES_PER_ELEMENT: bytes, constructor } = chunks[0];
  const views = chunks.map(unsigned);
  const placed = bands.place(views, (stride * bytes) / views[0].BYTES_PER_ELEMENT);
  return new (constructor as new (buffer: ArrayBufferLike) => Int32Array)(placed.buffer);
}

/**
 * Views values as unsigned integers of the same width; values of 64 bits and more as several 32-bit words.
 */
function unsigned({ buffer, byteOffset, byteLength, BYTES_PER_ELEMENT: bytes }: Int32Array): BandValues {
  if (bytes === 1) return new Uint8Array(buffer, byteOffset, byteLength);
  return bytes === 2
    ? new Uint16Array(buffer, byteOffset, byteLength >> 1)
    : new Uint32Array(buffer, byteOffset, byteLength >> 2);
}

/** A byte of 0 or 1 for each row of all chunks: its bit, or 1 for chunks without bits. */
function bytesOfRows(
  chunks: readonly Data[],
  rows: number,
  bitsOf: (data: Data) => Uint8Array | undefined,
): Uint8Array {
  const bytes = new Uint8Array(rows);
  let row = 0;
  for (const data of chunks) {
    const own = bytes.subarray(row, row + data.length);
    const bits = bitsOf(data);
    if (bits === undefined) own.fill(1);
    else bytesOfBits(bits, data.offset, own);
    row += data.length;
  }
  return bytes;
}
