import { Data, DataType, Field, makeData, RecordBatch, Schema, Utf8, Vector } from 'apache-arrow';
import type { LargeUtf8, Utf8View } from 'apache-arrow';
import { expandDictionary } from '../../engine/stream/dictionary-values.ts';
import { joinData } from '../../engine/stream/join-data.ts';
import { copyBytes, takeData, VIEW_BYTES } from '../../engine/stream/take-data.ts';
import { batchOf } from '../../engine/stream/whole-data.ts';

/**
 * A batch whose dictionaries or views expand to more than this number of bytes is divided: a text of 64 KiB
 * in 100,000 rows must not be copied 100,000 times.
 */
const MOST_BYTES = 1 << 26;
/** Text with 64-bit offsets is converted to 32-bit offsets in batches of at most this number of bytes. */
const MOST_LARGE = 1 << 30;

/**
 * The schema with plain columns. Strings may arrive as dictionaries (pandas), with 64-bit offsets (polars) or
 * as views. The engine supports utf8 alone. Dictionaries of numbers become plain too.
 */
export function plainSchema(schema: Schema): Schema {
  if (schema.fields.every(({ type }) => plainType(type) === type)) return schema;
  return new Schema(
    schema.fields.map((field) => {
      const type = plainType(field.type);
      return type === field.type ? field : new Field(field.name, type, field.nullable);
    }),
  );
}

/**
 * Yields the batch with plain columns (see plainSchema), in parts of bounded size; the batch itself if all
 * columns are plain. Works on the stored bytes: Arrow's vectors would drop a byte order mark from a text, and
 * return nanoseconds as doubles.
 */
export function* plainBatches(batch: RecordBatch): Generator<RecordBatch> {
  const schema = plainSchema(batch.schema);
  if (schema === batch.schema) return yield batch;
  const { children } = batch.data;
  for (const [from, to] of partsOf(batch)) {
    const rows =
      from === 0 && to === batch.numRows
        ? undefined
        : Uint32Array.from({ length: to - from }, (_, i) => from + i);
    const plain = children.map((child, index) =>
      plainData(rows === undefined ? child : takeData(child, rows), schema.fields[index].type),
    );
    yield batchOf(schema, to - from, plain);
  }
}

function plainType(type: DataType): DataType {
  if (DataType.isDictionary(type)) return plainType(type.dictionary);
  return DataType.isLargeUtf8(type) || DataType.isUtf8View(type) ? new Utf8() : type;
}

/** Row ranges [from, to) of the parts, at least one row each, limited by the bytes of their text. */
function partsOf({ numRows, data }: RecordBatch): (readonly [from: number, to: number])[] {
  const lengths = data.children.map(lengthsOf).filter((lengthOf) => lengthOf !== undefined);
  if (lengths.length === 0) return [[0, numRows]];
  const parts: (readonly [number, number])[] = [];
  let [from, bytes] = [0, 0];
  for (let row = 0; row < numRows; row++) {
    let length = 0;
    for (const lengthOf of lengths) length += lengthOf(row);
    if (bytes + length > MOST_BYTES && row > from) {
      parts.push([from, row]);
      [from, bytes] = [row, 0];
    }
    bytes += length;
  }
  return [...parts, [from, numRows]];
}

/**
 * Returns the bytes of each row's text, for columns whose plain form may become large; undefined for other
 * columns.
 */
function lengthsOf(data: Data): ((row: number) => number) | undefined {
  const { type, length } = data;
  if (DataType.isLargeUtf8(type)) {
    const offsets = data.valueOffsets as unknown as BigInt64Array;
    return length > 0 && offsets[length] - offsets[0] > MOST_LARGE
      ? (row) => Number(offsets[row + 1] - offsets[row])
      : undefined;
  }
  if (DataType.isUtf8View(type)) return viewLengths(data);
  if (!DataType.isDictionary(type) || !DataType.isUtf8(plainType(type))) return undefined;
  const { valueOffsets, length: known } = plainDictionary(data);
  let longest = 0;
  for (let code = 0; code < known; code++)
    longest = Math.max(longest, valueOffsets[code + 1] - valueOffsets[code]);
  if (longest * length <= MOST_BYTES) return undefined;
  const codes = data.values as Int32Array | BigInt64Array;
  return (row) => {
    const code = Number(codes[row]);
    return code >= 0 && code < known && data.getValid(row) ? valueOffsets[code + 1] - valueOffsets[code] : 0;
  };
}

function plainData(data: Data, type: DataType): Data {
  if (data.type === type) return data;
  if (DataType.isLargeUtf8(data.type)) return narrowOffsets(data as Data<LargeUtf8>);
  if (DataType.isUtf8View(data.type)) return textOfViews(data as Data<Utf8View>);
  return expandDictionary(data, plainDictionary(data));
}

/** Text with 32-bit offsets instead of 64-bit ones; the bytes are not copied. */
function narrowOffsets(data: Data<LargeUtf8>): Data<Utf8> {
  const { valueOffsets, values, length } = data;
  const first = Number(valueOffsets[0] ?? 0n);
  const offsets = Int32Array.from({ length: length + 1 }, (_, i) => Number(valueOffsets[i] ?? 0n) - first);
  return makeData({
    type: new Utf8(),
    length,
    ...nullsOf(data),
    valueOffsets: offsets,
    data: values.subarray(first, first + offsets[length]),
  });
}

/**
 * Copies views to plain text. A view is a length, then either up to twelve bytes of text, or its first four
 * bytes, the number of a buffer and an offset there.
 */
function textOfViews(data: Data<Utf8View>): Data<Utf8> {
  const { length, variadicBuffers } = data;
  const views = data.values as unknown as Uint8Array;
  const words = new DataView(views.buffer, views.byteOffset, views.byteLength);
  const lengthOf = viewLengths(data);
  const offsets = new Int32Array(length + 1);
  for (let row = 0; row < length; row++) offsets[row + 1] = offsets[row] + lengthOf(row);
  const bytes = new Uint8Array(offsets[length]);
  for (let row = 0; row < length; row++) {
    const [at, size] = [VIEW_BYTES * row, offsets[row + 1] - offsets[row]];
    if (size <= 12) copyBytes(views, at + 4, size, bytes, offsets[row]);
    else
      copyBytes(
        variadicBuffers[words.getInt32(at + 8, true)],
        words.getInt32(at + 12, true),
        size,
        bytes,
        offsets[row],
      );
  }
  return makeData({ type: new Utf8(), length, ...nullsOf(data), valueOffsets: offsets, data: bytes });
}

function viewLengths(data: Data): (row: number) => number {
  const { buffer, byteOffset, byteLength } = data.values as unknown as Uint8Array;
  const words = new DataView(buffer, byteOffset, byteLength);
  return (row) => (data.nullCount === 0 || data.getValid(row) ? words.getInt32(VIEW_BYTES * row, true) : 0);
}

const plainDictionaries = new WeakMap<Vector, Data>();

/** The dictionary's values as one array; made once, since batches share a dictionary. */
function plainDictionary(data: Data): Data {
  const dictionary = data.dictionary as Vector;
  let plain = plainDictionaries.get(dictionary);
  if (plain === undefined) {
    plain = joinData(
      plainType(dictionary.type),
      dictionary.data.map((part) => plainData(part, plainType(part.type))),
    );
    plainDictionaries.set(dictionary, plain);
  }
  return plain;
}

/** The nulls of a column, as a bitmap whose first bit is the first row. */
function nullsOf(data: Data): { readonly nullCount: number; readonly nullBitmap?: Uint8Array } {
  if (data.nullCount === 0) return { nullCount: 0 };
  if ((data.offset & 7) === 0)
    return { nullCount: data.nullCount, nullBitmap: data.nullBitmap.subarray(data.offset >> 3) };
  const nullBitmap = new Uint8Array(((data.length + 63) >> 6) << 3);
  for (let row = 0; row < data.length; row++) if (data.getValid(row)) nullBitmap[row >> 3] |= 1 << (row & 7);
  return { nullCount: data.nullCount, nullBitmap };
}
