import {
  type Data,
  DataType,
  DateUnit,
  Int32,
  Int64,
  makeData,
  type RecordBatch,
  Utf8,
  Vector,
} from 'apache-arrow';
import { CapacityError, DataError, type ErrorDetails } from '../errors.ts';
import { DAY, dateText } from '../expressions/civil.ts';
import { sharedArray } from '../partition.ts';
import { placeOf } from '../stream/stream.ts';
import {
  type KeyColumn,
  keyCount,
  type KeyType,
  takeKeys,
  UNKNOWN_KEY,
  wholeKeys,
  type WholeKeys,
  wordsOfKeys,
} from './key-column.ts';
import type { KeyLookup } from './key-lookup.ts';

/**
 * The key type for ids of an Arrow type: smaller integers become int32, uint32 becomes int64, dictionaries
 * become utf8. Unsigned 64-bit integers, floats and decimals become int64 if their values are whole; 16 bytes
 * become the text of a UUID, dates their ISO text (see convertIds).
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
  throw new DataError(`ids must be whole numbers, text, dates or UUIDs, but the type is ${type}`, {
    column,
    ...(DataType.isTimestamp(type) && {
      advice: `Cast the column to utf8 or date, or read it as text: { types: { ${JSON.stringify(column)}: 'utf8' } }`,
    }),
  });
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
  if (type !== 'utf8') {
    const words = parts.map((part) => wordsOfKeys(part as WholeKeys));
    return wholeKeys(type, joined(Int32Array, words));
  }
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

/** Called for a row whose id cannot be represented exactly as a key; the row's key is then undefined. */
type OnRefused = (row: number, reason: string) => void;

const two32 = 2 ** 32;
const HEX = '0123456789abcdef';

/**
 * The key type of ids that are converted: whole numbers of other types become int64, dates and UUIDs become
 * text. Undefined for other types.
 */
function convertedType(type: DataType): 'int64' | 'utf8' | undefined {
  if (DataType.isInt(type) && type.bitWidth === 64 && !type.isSigned) return 'int64';
  if (DataType.isFloat(type) && type.precision !== 0) return 'int64';
  if (DataType.isDecimal(type)) return 'int64';
  if (DataType.isDate(type)) return 'utf8';
  return DataType.isFixedSizeBinary(type) && type.byteWidth === 16 ? 'utf8' : undefined;
}

/**
 * Converts a column of a type for which `convertedType` is defined to keys. `onRefused` is called for rows
 * whose value cannot be represented exactly; it is not called for nulls.
 */
function convertIds(data: Data, onRefused: OnRefused): KeyColumn {
  const { type } = data;
  const isNull = (row: number) => data.nullCount > 0 && !data.getValid(row);
  const refuse: OnRefused = (row, reason) => {
    if (!isNull(row)) onRefused(row, reason);
  };
  if (DataType.isFixedSizeBinary(type)) return uuidTexts(data.values as Uint8Array, data.length);
  if (DataType.isDate(type)) return dateTexts(data, type.unit);
  if (DataType.isFloat(type))
    return wholeFloats(data.values as Float64Array, data.length, type.precision === 1 ? 24 : 53, refuse);
  if (DataType.isDecimal(type))
    return wholeDecimals(data.values as Uint32Array, data.length, type.bitWidth / 32, type.scale, refuse);
  return signedHalves(data.values as unknown as BigUint64Array, data.length, refuse);
}

function signedHalves(values: BigUint64Array, rows: number, refuse: OnRefused): KeyColumn {
  const halves = new Int32Array(values.buffer, values.byteOffset, 2 * rows);
  for (let row = 0; row < rows; row++)
    if (halves[2 * row + 1] < 0) refuse(row, `${values[row]} is beyond int64`);
  return { type: 'int64', halves };
}

/**
 * Whole numbers of more than 24 bits (float32) or 53 bits (float64) are refused: the column may have lost
 * the last digits of the id.
 */
function wholeFloats(
  values: Float64Array | Float32Array,
  rows: number,
  bits: number,
  refuse: OnRefused,
): KeyColumn {
  const halves = new Int32Array(2 * rows);
  const most = 2 ** bits;
  for (let row = 0; row < rows; row++) {
    const value = values[row];
    if (!Number.isInteger(value)) refuse(row, `${value} is not a whole number`);
    else if (Math.abs(value) >= most)
      refuse(row, `${value} is beyond 2^${bits}, where a float does not hold every whole number`);
    halves[2 * row] = value;
    halves[2 * row + 1] = Math.floor(value / two32);
  }
  return { type: 'int64', halves };
}

/** A decimal is a whole number in 32-bit words, lowest first, divided by 10^scale. */
function wholeDecimals(
  words: Uint32Array,
  rows: number,
  width: number,
  scale: number,
  refuse: OnRefused,
): KeyColumn {
  const halves = new Int32Array(2 * rows);
  const unit = 10n ** BigInt(Math.max(0, scale));
  const factor = 10n ** BigInt(Math.max(0, -scale));
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    const low = words[at] | 0;
    const high = width > 1 ? words[at + 1] | 0 : low >> 31;
    if (scale === 0 && isExtended(words, at, width, high)) {
      halves[2 * row] = low;
      halves[2 * row + 1] = high;
      continue;
    }
    const value = decimalAt(words, row, width) * factor;
    const whole = value / unit;
    if (whole * unit !== value) refuse(row, `${decimalText(value, scale)} is not a whole number`);
    else if (BigInt.asIntN(64, whole) !== whole) refuse(row, `${whole} is beyond int64`);
    halves[2 * row] = Number(BigInt.asIntN(32, whole));
    halves[2 * row + 1] = Number(BigInt.asIntN(32, whole >> 32n));
  }
  return { type: 'int64', halves };
}

/** True if a number of several words fits its lowest two: the higher words only repeat the sign. */
function isExtended(words: Uint32Array, at: number, width: number, high: number): boolean {
  for (let word = 2; word < width; word++) if ((words[at + word] | 0) !== high >> 31) return false;
  return true;
}

/** The whole number of a decimal, before it is divided by 10^scale. */
export function decimalAt(words: Uint32Array, row: number, width: number): bigint {
  let value = 0n;
  for (let word = width - 1; word >= 0; word--) value = (value << 32n) | BigInt(words[row * width + word]);
  return BigInt.asIntN(32 * width, value);
}

/** 150 with scale 2 -> "1.50" */
export function decimalText(value: bigint, scale: number): string {
  if (scale <= 0) return String(value * 10n ** BigInt(-scale));
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** `2024-01-31` */
function dateTexts({ values, length }: Data, unit: DateUnit): KeyColumn {
  const perDay = unit === DateUnit.DAY ? 1 : DAY / 1000;
  const offsets = new Int32Array(length + 1);
  const texts: Uint8Array[] = [];
  for (let row = 0; row < length; row++) {
    texts.push(Buffer.from(dateText(Math.floor(Number(values[row]) / perDay))));
    offsets[row + 1] = offsets[row] + texts[row].length;
  }
  return { type: 'utf8', offsets, bytes: Buffer.concat(texts) };
}

/** 16 bytes as 8-4-4-4-12 hexadecimal digits. */
export function uuidTexts(values: Uint8Array, rows: number): KeyColumn & { readonly type: 'utf8' } {
  const bytes = new Uint8Array(36 * rows);
  let at = 0;
  for (let p = 0; p < 16 * rows; p++) {
    const i = p & 15;
    if (i === 4 || i === 6 || i === 8 || i === 10) bytes[at++] = 0x2d;
    bytes[at++] = HEX.charCodeAt(values[p] >> 4);
    bytes[at++] = HEX.charCodeAt(values[p] & 15);
  }
  return { type: 'utf8', offsets: Int32Array.from({ length: rows + 1 }, (_, row) => 36 * row), bytes };
}

/**
 * Returns the position of the key in each row of a batch's column; UNKNOWN_KEY if the row is null or its key
 * is not in the lookup. Throws DataError for a value that is not an exact id, and for keys that cannot be
 * compared.
 */
export function batchPositions(lookup: KeyLookup, batch: RecordBatch, column: string): Uint32Array {
  const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === column)];
  const type = keyTypeOf(data.type, column);
  lookup.requireComparable(type, column);
  const codes = lookup.positionsOf(keysFromData(data, type, refusedIn(batch, column)));
  if (hasNulls(data)) for (let i = 0; i < codes.length; i++) if (isNullAt(data, i)) codes[i] = UNKNOWN_KEY;
  return codes;
}
