import { type Data, DataType, Int32, Int64, makeData, type RecordBatch, Utf8, Vector } from 'apache-arrow';
import { CapacityError, DataError, type ErrorDetails } from '../errors.ts';
import { placeOf } from '../stream/stream.ts';
import { convertedType, convertIds, type OnRefused } from './exact-ids.ts';
import { sharedArray } from '../partition.ts';
import { type KeyColumn, keyCount, type KeyType, takeKeys } from './key-column.ts';

/**
 * The key type for ids of an Arrow type: smaller integers become int32, uint32 becomes int64, dictionaries
 * become utf8. Unsigned 64-bit integers, floats and decimals become int64 if their values are whole; 16 bytes
 * become the text of a UUID (see convertIds).
 */
export function keyTypeOf(type: DataType, column: string): KeyType {
  if (DataType.isInt(type)) {
    if (type.bitWidth < 32 || (type.bitWidth === 32 && type.isSigned)) return 'int32';
    return 'int64';
  }
  if (DataType.isUtf8(type) || DataType.isLargeUtf8(type)) return 'utf8';
  if (
    DataType.isDictionary(type) &&
    (DataType.isUtf8(type.dictionary) || DataType.isLargeUtf8(type.dictionary))
  )
    return 'utf8';
  const converted = convertedType(type);
  if (converted !== undefined) return converted;
  throw new DataError(`ids must be whole numbers, text or UUIDs, but the type is ${type}`, { column });
}

/** True if some row of a column is null; in a dictionary column also if an entry is null. */
export function hasNulls(data: Data): boolean {
  return data.nullCount > 0 || (data.dictionary?.nullCount ?? 0) > 0;
}

/** True if a row of a column is null. Call it only for columns that contain nulls. */
export function isNullAt(data: Data, row: number): boolean {
  if (!data.getValid(row)) return true;
  const dictionary = data.dictionary;
  return (
    dictionary !== undefined &&
    dictionary.nullCount > 0 &&
    !dictionary.isValid(Number((data.values as Int32Array)[row]))
  );
}

/** Throws the reason why a value cannot be an id. */
function throwRefused(_row: number, reason: string): never {
  throw new DataError(`${reason}, so it cannot be an id`);
}

/** A handler for refused ids: throws the reason, with the place of the row. */
export function refusedIn(batch: RecordBatch, column: string): OnRefused {
  return (position, reason) => {
    const { fault: _fault, ...place } = placeOf(batch, position) ?? {};
    throw new DataError(`${reason}, so it cannot be an id`, { phase: 'read', ...place, column });
  };
}

/**
 * Most bytes of a text id. Each id is in memory several times at once: in the decoder, in a thread's keys
 * and in the model.
 */
export const LONGEST_ID = 1 << 24;

/** The error of an id with more bytes. */
export function idTooLong(bytes: number, place: ErrorDetails): CapacityError {
  return new CapacityError(
    `an id has ${bytes.toLocaleString('en')} bytes of text, and at most ${LONGEST_ID.toLocaleString('en')} fit`,
    { phase: 'read', ...place, advice: 'Write shorter ids' },
  );
}

/** Throws CapacityError with the place of the row if an id has more bytes. */
export function requireShortIds(batch: RecordBatch, data: Data, column: string): void {
  const { length, type } = data;
  const offsets = data.valueOffsets as Int32Array;
  if (!DataType.isUtf8(type) || length === 0 || offsets[length] - offsets[0] <= LONGEST_ID) return;
  for (let row = 0; row < length; row++) {
    const bytes = offsets[row + 1] - offsets[row];
    if (bytes <= LONGEST_ID) continue;
    const { fault: _fault, ...place } = placeOf(batch, row) ?? {};
    throw idTooLong(bytes, { ...place, column });
  }
}

/**
 * Returns the keys of one Arrow column, which must have no nulls. The keys of int32, int64 and utf8 columns
 * are views of the Arrow buffers, not copies. Values that cannot be represented exactly as keys are passed to
 * `onRefused`; without it they throw DataError.
 */
export function keysFromData(data: Data, type: KeyType, onRefused: OnRefused = throwRefused): KeyColumn {
  const arrow = data.type;
  if (convertedType(arrow) !== undefined) return convertIds(data, onRefused);
  if (DataType.isDictionary(arrow)) return expandDictionary(data);
  if (DataType.isInt(arrow)) {
    if (type === 'int32') {
      const values = (data.values as Int32Array).subarray(0, data.length);
      return { type, values: arrow.bitWidth === 32 ? values : Int32Array.from(values) };
    }
    if (arrow.bitWidth === 64) {
      const values = data.values as BigInt64Array;
      return { type: 'int64', halves: new Int32Array(values.buffer, values.byteOffset, 2 * data.length) };
    }
    const halves = new Int32Array(2 * data.length);
    const values = data.values as Int32Array;
    for (let i = 0; i < data.length; i++) {
      halves[2 * i] = values[i];
      halves[2 * i + 1] = arrow.isSigned ? values[i] >> 31 : 0;
    }
    return { type: 'int64', halves };
  }
  return utf8FromData(data);
}

/** The column as an Arrow vector: Int32, Int64 or Utf8, without a copy. */
export function keysToVector(column: KeyColumn): Vector<Int32 | Int64 | Utf8> {
  const length = keyCount(column);
  if (column.type === 'int32')
    return new Vector([makeData({ type: new Int32(), length, data: column.values })]);
  if (column.type === 'int64') {
    const data = new BigInt64Array(column.halves.buffer, column.halves.byteOffset, length);
    return new Vector([makeData({ type: new Int64(), length, data })]);
  }
  return new Vector([
    makeData({ type: new Utf8(), length, valueOffsets: column.offsets, data: column.bytes }),
  ]);
}

/** The keys of a whole vector as one column; chunks are joined. */
export function keysFromVector(vector: Vector, name: string): KeyColumn {
  const type = keyTypeOf(vector.type, name);
  const parts = vector.data.map((data) => keysFromData(data, type));
  return parts.length === 1 ? parts[0] : concatKeys(type, parts);
}

/** Joins columns of one type, in shared memory. */
export function concatKeys(type: KeyType, parts: readonly KeyColumn[]): KeyColumn {
  if (type === 'int32')
    return {
      type,
      values: joined(
        Int32Array,
        parts.map((part) => (part as KeyColumn & { type: 'int32' }).values),
      ),
    };
  if (type === 'int64')
    return {
      type,
      halves: joined(
        Int32Array,
        parts.map((part) => (part as KeyColumn & { type: 'int64' }).halves),
      ),
    };
  const columns = parts as (KeyColumn & { type: 'utf8' })[];
  const offsets = sharedArray(
    Int32Array,
    columns.reduce((sum, part) => sum + part.offsets.length - 1, 1),
  );
  let row = 0;
  for (const part of columns) {
    for (let i = 1; i < part.offsets.length; i++, row++)
      offsets[row + 1] = offsets[row] + part.offsets[i] - part.offsets[i - 1];
  }
  const bytes = joined(
    Uint8Array,
    columns.map((part) => part.bytes.subarray(part.offsets[0], part.offsets.at(-1))),
  );
  return { type, offsets, bytes };
}

function joined<T extends Int32Array | Uint8Array>(
  type: { new (buffer: ArrayBufferLike): T; readonly BYTES_PER_ELEMENT: number },
  parts: readonly T[],
): T {
  const all = sharedArray(
    type,
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function utf8FromData(data: Data): KeyColumn {
  const { valueOffsets, values } = data as unknown as {
    valueOffsets: Int32Array | BigInt64Array;
    values: Uint8Array;
  };
  const wide = valueOffsets instanceof BigInt64Array;
  const offsets = wide
    ? Int32Array.from(valueOffsets.subarray(0, data.length + 1), Number)
    : valueOffsets.subarray(0, data.length + 1);
  return { type: 'utf8', offsets, bytes: values };
}

function expandDictionary(data: Data): KeyColumn {
  const dictionary = keysFromVector(
    (data as unknown as { dictionary: Vector }).dictionary,
    'dictionary',
  ) as KeyColumn & { type: 'utf8' };
  // Codes of 8 to 64 bits.
  const codes = data.values as Int32Array | BigInt64Array;
  const known = keyCount(dictionary);
  // Codes of null rows are undefined. A code outside the dictionary becomes an empty key; the caller drops
  // null rows.
  const positions = Int32Array.from({ length: data.length }, (_, row) =>
    codes[row] >= 0 && codes[row] < known ? Number(codes[row]) : known,
  );
  return takeKeys(
    concatKeys('utf8', [dictionary, { type: 'utf8', offsets: new Int32Array(2), bytes: new Uint8Array(0) }]),
    positions,
  );
}
