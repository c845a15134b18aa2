import { Data, DataType, DateUnit, type Decimal, TimeUnit, Utf8, type Vector } from 'apache-arrow';
import { DataError } from '../errors.ts';
import { decimalAt, uuidTexts } from '../keys/arrow-keys.ts';
import { fromHalf } from '../numbers/half.ts';
import { bytesOfBits } from '../stream/take-data.ts';
import { plainValues } from '../values/plain-values.ts';
import { isUuid } from '../values/value-texts.ts';
import type { PlainNumbers } from './compare-kernel.ts';
import { beyondDigits, scaled as scaledDecimals } from './decimals.ts';
import { lasting, numbers } from './scratch.ts';
import { MOST_DIGITS, valueTypeOf } from './types.ts';
import {
  type BigValues,
  decimals,
  gather,
  integers,
  nulls,
  type NumberValues,
  type TextValues,
  type Values,
  type WideValues,
} from './values.ts';
import { writeData } from './write.ts';

/** Called for a row, not a null, whose value does not fit the form that kernels use. */
type OnRefused = (row: number, reason: string) => void;

function throwRefused(row: number, reason: string): never {
  throw new DataError(`row ${row + 1}: ${reason}`);
}

/** Reads a column of a batch into the form that kernels use. A slice contains its own rows only. */
export function readData(data: Data, onRefused: OnRefused = throwRefused): Values {
  const type = valueTypeOf(data.type);
  const shape = { type, length: data.length, valid: validityOf(data), constant: false };
  if (DataType.isDictionary(data.type)) return readDictionary(data, shape.valid);
  const raw: unknown = data.values;
  switch (type) {
    case 'null':
      return nulls(type, data.length, false);
    case 'other':
      return { form: 'opaque', data, ...shape };
    case 'bool':
      return {
        form: 'bool',
        values: bytesOfBits(data.values as Uint8Array, data.offset, new Uint8Array(data.length)),
        ...shape,
      };
    case 'utf8':
      return readText(data, shape.valid);
    default:
  }
  if (DataType.isTimestamp(data.type)) return readTimestamps(data, shape, onRefused);
  if (DataType.isDecimal(data.type)) return readDecimals(data as Data<Decimal>, shape, onRefused);
  if (DataType.isDate(data.type) && data.type.unit === DateUnit.MILLISECOND)
    return readDates(wide(raw, data.length), shape, onRefused);
  if (raw instanceof BigInt64Array || raw instanceof BigUint64Array)
    return integers(raw.subarray(0, data.length), shape);
  if (DataType.isFloat(data.type) && raw instanceof Uint16Array) {
    return { form: 'number', values: Float64Array.from(raw.subarray(0, data.length), fromHalf), ...shape };
  }
  if (raw instanceof Float64Array) return { form: 'number', values: raw.subarray(0, data.length), ...shape };
  const values = numbers(data.length);
  values.set((raw as Float32Array).subarray(0, data.length));
  return { form: 'number', values, ...shape };
}

/** Numbers of a column, and one byte per row: 0 for null. */
export interface StoredNumbers {
  readonly values: PlainNumbers;
  readonly valid: Uint8Array | undefined;
}

/** The numbers of an int32 or float column as they are stored; undefined for other types. */
export function storedNumbers(data: Data): StoredNumbers | undefined {
  const { type, length } = data;
  const raw: unknown = data.values;
  const isPlain = DataType.isInt(type)
    ? raw instanceof Int32Array && type.bitWidth === 32
    : DataType.isFloat(type) && !(raw instanceof Uint16Array);
  return isPlain ? { values: (raw as PlainNumbers).subarray(0, length), valid: validityOf(data) } : undefined;
}

function validityOf(data: Data): Uint8Array | undefined {
  if (data.nullCount === 0 || DataType.isNull(data.type)) return undefined;
  return bytesOfBits(data.nullBitmap, data.offset, new Uint8Array(data.length));
}

function wide(values: unknown, length: number): BigInt64Array {
  if (values instanceof BigInt64Array) return values.subarray(0, length);
  const pairs = values as Int32Array;
  return new BigInt64Array(pairs.slice(0, 2 * length).buffer);
}

function scaled(column: NumberValues | WideValues, scale: (value: number) => number): NumberValues {
  const values = Float64Array.from(column.values as Iterable<number | bigint>, (value) =>
    scale(Number(value)),
  );
  return { ...column, form: 'number', values };
}

/** Days of a date of milliseconds. */
function readDates(
  values: BigInt64Array,
  shape: Omit<NumberValues, 'form' | 'values'>,
  onRefused: OnRefused,
) {
  const days = scaled(integers(values, shape), (value) => Math.floor(value / 86_400_000));
  for (let i = 0; i < days.length; i++)
    if (Math.abs(days.values[i]) >= 2 ** 31 && shape.valid?.[i] !== 0)
      onRefused(i, `the date ${values[i]} (milliseconds since 1970) is beyond the range of dates`);
  return days;
}

/** Microseconds; nanoseconds are rounded down. */
function readTimestamps(
  data: Data,
  shape: Omit<NumberValues, 'form' | 'values'>,
  onRefused: OnRefused,
): Values {
  const values = wide(data.values, data.length);
  const unit = DataType.isTimestamp(data.type) ? data.type.unit : TimeUnit.MICROSECOND;
  if (unit === TimeUnit.MICROSECOND) return integers(values, shape);
  if (unit === TimeUnit.NANOSECOND) return integers(thousandths(values), shape);
  const factor = unit === TimeUnit.SECOND ? 1e6 : 1e3;
  const column = integers(values, shape);
  const safe = Math.floor(Number.MAX_SAFE_INTEGER / factor);
  if (column.form === 'number' && column.values.every((value) => Math.abs(value) <= safe))
    return scaled(column, (value) => value * factor);
  const name = unit === TimeUnit.SECOND ? 'seconds' : 'milliseconds';
  const micros = BigInt64Array.from(values, (value, row) => {
    const count = value * BigInt(factor);
    if (BigInt.asIntN(64, count) === count) return count;
    if (shape.valid?.[row] !== 0)
      onRefused(row, `the time ${value} (${name} since 1970) is beyond the years -290308 to 294247`);
    return 0n;
  });
  return integers(micros, shape);
}

/**
 * Floor of v / 1000, by 32-bit halves. With high = 1000 q + r: high 2^32 + low = 1000 (q 2^32) + (r 2^32 +
 * low).
 */
function thousandths(values: BigInt64Array): BigInt64Array {
  const result = new BigInt64Array(values.length);
  const [from, to] = [new Int32Array(values.slice().buffer), new Int32Array(result.buffer)];
  for (let i = 0; i < from.length; i += 2) {
    const high = Math.floor(from[i + 1] / 1000);
    const rest = Math.floor(((from[i + 1] - 1000 * high) * 2 ** 32 + (from[i] >>> 0)) / 1000);
    to[i + 1] = high + Math.floor(rest / 2 ** 32);
    to[i] = rest % 2 ** 32;
  }
  return result;
}

function readDecimals(
  { type, values: words, length }: Data<Decimal>,
  shape: Omit<NumberValues, 'form' | 'values' | 'length'>,
  onRefused: OnRefused,
): NumberValues | BigValues {
  const { bitWidth, precision, scale } = type;
  const width = bitWidth / 32;
  const low = new BigInt64Array(length);
  const halves = new Int32Array(low.buffer);
  let isLong = false;
  for (let i = 0; i < length; i++) {
    halves[2 * i] = words[i * width];
    halves[2 * i + 1] = width === 1 ? Number(words[i]) >> 31 : words[i * width + 1];
    for (let word = 2; word < width; word++)
      isLong ||= (words[i * width + word] | 0) !== halves[2 * i + 1] >> 31;
  }
  const short = isLong ? undefined : integers(low, shape);
  const bigs = (_: unknown, row: number) => (isLong ? decimalAt(words, row, width) : low[row]);
  let column = short?.form === 'number' ? short : decimals(Array.from({ length }, bigs), shape);
  if (scale < 0) column = scaledDecimals(column, -scale, shape);
  if (precision <= MOST_DIGITS) return column;
  beyondDigits(column).forEach((isBeyond, row) => {
    if (isBeyond === 1 && shape.valid?.[row] !== 0)
      onRefused(row, `a value of ${type} has more than ${MOST_DIGITS} digits`);
  });
  return column;
}

// A byte order mark at the beginning of a text is part of it.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Reads a text column. Its strings are decoded when `values` is first used; kernels that compare bytes use
 * `utf8` and need no strings.
 */
function readText(data: Data, valid: Uint8Array | undefined): TextValues {
  if (isUuid(data.type)) {
    const { offsets, bytes } = uuidTexts(data.values as unknown as Uint8Array, data.length);
    const texts = new Data(new Utf8(), 0, data.length, 0, { 0: offsets, 1: bytes } as never);
    return readText(texts, valid);
  }
  let texts: readonly string[] | undefined;
  const { length } = data;
  const isStored = DataType.isUtf8(data.type) && length > 0;
  return {
    form: 'text',
    type: 'utf8',
    length,
    valid,
    constant: false,
    utf8: isStored ? { offsets: data.valueOffsets, bytes: data.values as Uint8Array } : undefined,
    get values() {
      return (texts ??= readTexts(data));
    },
  };
}

/** Decodes texts. If all bytes are ASCII, one decoded string is cut into the texts. */
function readTexts(data: Data): readonly string[] {
  const { length } = data;
  if (DataType.isUtf8View(data.type)) {
    const valueOf = plainValues(data);
    return Array.from({ length }, (_, row) => (valueOf(row) as string | null) ?? '');
  }
  if (length === 0) return [];
  const offsets = Float64Array.from(
    data.valueOffsets.subarray(0, length + 1) as Iterable<number | bigint>,
    Number,
  );
  const bytes = (data.values as Uint8Array).subarray(offsets[0], offsets[length]);
  const texts: string[] = [];
  const whole = decoder.decode(bytes);
  const ascii = whole.length === bytes.length;
  for (let row = 0; row < length; row++) {
    const [start, end] = [offsets[row] - offsets[0], offsets[row + 1] - offsets[0]];
    texts.push(ascii ? whole.slice(start, end) : decoder.decode(bytes.subarray(start, end)));
  }
  return texts;
}

/** Decoded dictionaries; the batches of a stream share them. */
const dictionaries = new WeakMap<Vector, Values>();

function entriesOf(dictionary: Vector): Values | undefined {
  const known = dictionaries.get(dictionary);
  if (known !== undefined) return known;
  const chunks = dictionary.data.map((chunk) => lastingValues(readData(chunk)));
  const entries = chunks.length === 1 ? chunks[0] : joined(chunks);
  if (entries !== undefined) dictionaries.set(dictionary, entries);
  return entries;
}

/** Copies values out of their batch, whose memory may be reused. */
function lastingValues(column: Values): Values {
  if (column.form === 'text') return { ...column, utf8: undefined };
  return column.form === 'number' ? { ...column, values: lasting(column.values) } : column;
}

function codesOf({ values, length }: Data): Int32Array {
  const stored: unknown = values;
  if (stored instanceof Int32Array) return stored.subarray(0, length);
  if (stored instanceof BigInt64Array || stored instanceof BigUint64Array)
    return Int32Array.from(stored.subarray(0, length), Number);
  return Int32Array.from((stored as Uint32Array).subarray(0, length));
}

function readDictionary(data: Data, ownValid: Uint8Array | undefined): Values {
  const codes = codesOf(data);
  const entries = data.dictionary && entriesOf(data.dictionary);
  if (entries === undefined) return nulls(valueTypeOf(data.type), data.length, false);
  if (entries.valid === undefined) return gather(entries, codes, ownValid);
  const valid = ownValid?.slice() ?? new Uint8Array(data.length).fill(1);
  for (let i = 0; i < codes.length; i++) valid[i] &= entries.valid[codes[i]] ?? 0;
  return gather(entries, codes, valid);
}

/** The chunks of a text dictionary as one column; undefined if there are none. */
function joined(chunks: readonly Values[]): TextValues | undefined {
  const texts = chunks.flatMap((chunk) => (chunk.form === 'text' ? chunk.values : []));
  if (texts.length === 0) return undefined;
  const valid = Uint8Array.from(
    chunks.flatMap((chunk) => Array.from(chunk.valid ?? new Uint8Array(chunk.length).fill(1))),
  );
  return { form: 'text', type: 'utf8', length: texts.length, values: texts, valid, constant: false };
}

/** Converts a column of text views to plain text; returns other columns unchanged. */
export function withoutViews(data: Data): Data {
  return DataType.isUtf8View(data.type) ? writeData(readData(data), data.length) : data;
}
