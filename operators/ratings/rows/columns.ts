import { shown } from '../../../engine/shown.ts';
import { type Data, DataType, type Decimal, Field, Int32, Int64, Schema, Utf8 } from 'apache-arrow';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import { nearest, spelled } from '../../../engine/nearest.ts';
import { fromHalf } from '../../../engine/numbers/half.ts';
import { isText } from './text-values.ts';
import type { KeyType } from '../../../engine/keys/key-column.ts';
import { LEFT_OUT } from '../../../engine/stream/stream.ts';

/** Field of a column. Throws DataError that names the existing columns. */
export function fieldOf(schema: Schema, column: string): Field {
  if (typeof column !== 'string')
    throw new UsageError(`the name of a column is a text, got ${shown(column)}`);
  const field = schema.fields.find((candidate) => candidate.name === column);
  if (field) return field;
  const guess = nearest(
    column,
    schema.fields.map(({ name }) => name),
  );
  throw new DataError(`there is no column "${column}"; there are: ${columnNames(schema)}`, {
    phase: 'read',
    advice: spelled(guess, 'Name the columns with userCol, itemCol, ratingCol and timestampCol'),
  });
}

export function columnNames(schema: Schema): string {
  const leftOut = schema.metadata.get(LEFT_OUT);
  const names = schema.fields.map((field) => `${field.name} (${field.type})`).join(', ') || 'none';
  return leftOut === undefined ? names : `${names}, and left out, ${leftOut}`;
}

/** Key type of an id column. Throws DataError if its type cannot be an id. */
export function keyTypeOfColumn(schema: Schema, column: string): KeyType {
  return keyTypeOf(fieldOf(schema, column).type, column);
}

export function arrowTypeOf(type: KeyType): Int32 | Int64 | Utf8 {
  if (type === 'int32') return new Int32();
  return type === 'int64' ? new Int64() : new Utf8();
}

/**
 * Throws DataError unless the column has numbers, text of numbers, or booleans. A column of times cannot be
 * ratings.
 */
export function requireRatings(schema: Schema, column: string): void {
  if (!schema.fields.some(({ name }) => name === column)) {
    throw new DataError(`there is no column "${column}"; there are: ${columnNames(schema)}`, {
      phase: 'read',
      advice:
        'Name the columns with userCol, itemCol, ratingCol and timestampCol; pairs without ratings are implicit data, for implicitPrefs: true',
    });
  }
  const { type } = fieldOf(schema, column);
  if (isNumeric(type) || DataType.isBool(type) || isText(type)) return;
  throw new DataError(`the column must hold numbers, but its type is ${type}`, { phase: 'read', column });
}

/** Throws DataError unless the column has times: numbers, timestamps, dates, or text of them. */
export function requireTimeValues(schema: Schema, column: string): void {
  const { type } = fieldOf(schema, column);
  if (isNumeric(type) || DataType.isTimestamp(type) || DataType.isDate(type) || isText(type)) return;
  throw new DataError(
    `the column must hold times: numbers, dates or text of dates, but its type is ${type}`,
    { phase: 'read', column },
  );
}

export function isNumeric(type: DataType): boolean {
  return DataType.isFloat(type) || DataType.isInt(type) || DataType.isDecimal(type);
}

/**
 * Values of a column of numbers as float32 or float64; a view if they already have that type. Elements at
 * nulls are undefined.
 */
export function numbersOf<T extends Float32Array | Float64Array>(
  data: Data,
  wanted: { new (length: number): T; readonly name: string },
): T {
  const values = data.values as unknown;
  if (values instanceof wanted) return values.subarray(0, data.length) as T;
  const result = new wanted(data.length);
  if (DataType.isDecimal(data.type)) fromDecimals(data.values as Uint32Array, data.type, result);
  else if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    for (let i = 0; i < data.length; i++) result[i] = Number(values[i]);
  } else if (DataType.isFloat(data.type) && values instanceof Uint16Array) {
    const halves = values.subarray(0, data.length);
    for (let i = 0; i < data.length; i++) result[i] = fromHalf(halves[i]);
  } else result.set((values as Float64Array).subarray(0, data.length));
  return result;
}

/**
 * Converts Arrow decimals to floating point. A decimal is a 128- or 256-bit integer divided by 10^scale,
 * stored as 32-bit words, lowest first, the highest signed: -1.5 with scale 1 is f1 ff ff ff | ff ff ff ff |
 * …. Integers up to 2^53 are converted with one rounding at most, larger ones with a few.
 */
function fromDecimals(
  words: Uint32Array,
  { bitWidth, scale }: Decimal,
  result: Float32Array | Float64Array,
): void {
  const width = bitWidth / 32;
  const unit = 10 ** scale;
  for (let i = 0; i < result.length; i++) {
    let value = words[(i + 1) * width - 1] | 0;
    for (let word = (i + 1) * width - 2; word >= i * width; word--) value = value * 2 ** 32 + words[word];
    result[i] = value / unit;
  }
}
