import {
  makeData,
  Bool,
  type Data,
  type DataType,
  DateDay,
  Int32,
  Utf8,
  Float32,
  Float64,
  Int64,
  TimestampMicrosecond,
} from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { type TextType, textTypes } from '../files/format-names.ts';
import { BARE, ESCAPED, ESCAPED_STRING, LITERAL, NESTED, STRING, type FieldBlock } from './field-block.ts';
import { DATE, readTime, time } from './parse-times.ts';
import {
  COMMA,
  DOT,
  latin1,
  NOT_A_NUMBER,
  NOT_WHOLE,
  parseDecimal,
  parseLongInteger,
  parseShortInteger,
  isMissing,
  isNaNText,
} from './parse-numbers.ts';

/** The Arrow type of a type's name. Throws UsageError for an unknown name. */
export function arrowType(type: TextType): DataType {
  switch (type) {
    case 'int32':
      return new Int32();
    case 'int64':
      return new Int64();
    case 'float32':
      return new Float32();
    case 'float64':
      return new Float64();
    case 'utf8':
      return new Utf8();
    case 'bool':
      return new Bool();
    case 'date':
      return new DateDay();
    case 'timestamp':
      return new TimestampMicrosecond();
    case 'timestamp(UTC)':
      return new TimestampMicrosecond('UTC');
    default:
      throw new UsageError(`unknown column type "${String(type)}"`, {
        advice: `Use one of: ${textTypes.join(', ')}`,
      });
  }
}

/**
 * Functions that the readers of columns of all types use. They recognize nulls, missing fields, and fields
 * that are not values of the type.
 */

const NESTED_VALUE = 'is an object or a list, which no column holds';
const NESTED_ADVICE = 'Name the other fields in the option columns, or take the value apart before';

/** A field that is not a value of its column's type. */
export class FieldProblem extends Error {
  readonly row: number;
  readonly column: number;
  /** Replaces the usual advice. */
  readonly advice: string | undefined;
  constructor(message: string, row: number, column: number, advice?: string) {
    super(message);
    this.advice = advice;
    this.row = row;
    this.column = column;
  }
}

/** Arrow's null bitmap, allocated at the first null. */
export class Nulls {
  count = 0;
  #bitmap: Uint8Array | undefined;
  readonly #rows: number;

  constructor(rows: number) {
    this.#rows = rows;
  }

  add(row: number): void {
    this.#bitmap ??= new Uint8Array(((this.#rows + 63) >> 6) << 3).fill(0xff);
    this.#bitmap[row >> 3] &= ~(1 << (row & 7));
    this.count++;
  }

  get parts(): { nullCount: number; nullBitmap?: Uint8Array } {
    return { nullCount: this.count, ...(this.#bitmap && { nullBitmap: this.#bitmap }) };
  }
}

/** Rules for turning fields into values. */
export interface ValueRules {
  /** True if a comma is the decimal separator. */
  readonly decimalComma: boolean;
  /**
   * Texts that mean null in columns of every type; undefined for the usual ones (NA, NULL, ...) in columns of
   * numbers.
   */
  readonly nulls: ReadonlySet<string> | undefined;
}

/** One column to read. */
interface Reading extends ValueRules {
  readonly block: FieldBlock;
  readonly column: number;
  /**
   * True if whole numbers may have leading zeros, and times digits beyond microseconds. For an inferred type
   * they may not, since 007 may be an id other than 7.
   */
  readonly zeros: boolean;
  /** Called for a field that is not a value of the type. It throws, or the field becomes null. */
  readonly onFault: (problem: FieldProblem) => void;
}

/** True for a field without a value: empty, or one of the texts that mean null. */
function isAbsent({ block, nulls }: Reading, start: number, end: number): boolean {
  return start === end || (nulls !== undefined && nulls.has(latin1(block.bytes, start, end)));
}

/**
 * Makes a field null whose text is not a value of its column's type, and reports it. A usual text for a
 * missing number, such as NA, is not reported.
 */
function refuse(
  { block, column, nulls, onFault }: Reading,
  row: number,
  missing: Nulls,
  message: string,
): void {
  const field = row * block.columns + column;
  const [start, end] = [block.starts[field], block.ends[field]];
  if (block.kinds[field] === NESTED) onFault(new FieldProblem(NESTED_VALUE, row, column, NESTED_ADVICE));
  else if (
    !isNaNText(block.bytes, start, end) &&
    (nulls !== undefined || !isMissing(block.bytes, start, end))
  )
    onFault(new FieldProblem(message, row, column));
  missing.add(row);
}

const QUOTE = 0x22;
const ZERO = 0x30;
const two32 = 2 ** 32;
const MICROS_OF_DAY = 86_400_000_000n;

const NO_TIME = 'is not a time such as 2024-05-31T12:00:00Z';
const FINER = 'has digits beyond microseconds, which a timestamp would lose';
const ZERO_FIRST = 'begins with a zero, which a whole number would lose';
/**
 * One column of a scanned block as Arrow data. Empty fields are null; in columns of numbers also empty quoted
 * fields.
 */
export function readColumn(reading: Reading, type: TextType): Data {
  const { rows } = reading.block;
  switch (type) {
    case 'int32':
      return readInt32(reading);
    case 'int64':
      return readInt64(reading);
    case 'float32':
      return readFloats(reading, new Float32Array(rows), 'float32');
    case 'float64':
      return readFloats(reading, new Float64Array(rows), 'float64');
    case 'bool':
      return readBooleans(reading);
    case 'date':
    case 'timestamp':
    case 'timestamp(UTC)':
      return readTimes(reading, type);
    default:
      return readText(reading);
  }
}

function readInt32(reading: Reading): Data {
  const { block, column, zeros } = reading;
  const { rows, columns, bytes, starts, ends } = block;
  const values = new Int32Array(rows);
  const nulls = new Nulls(rows);
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (isAbsent(reading, start, end)) {
      nulls.add(row);
      continue;
    }
    const value = parseShortInteger(bytes, start, end);
    if (value === undefined || value !== (value | 0))
      refuse(reading, row, nulls, wholeProblem(block, field, 'int32'));
    else if (!zeros && hasLeadingZero(bytes, start, end)) refuse(reading, row, nulls, ZERO_FIRST);
    else values[row] = value;
  }
  return makeData({ type: arrowType('int32') as Int32, length: rows, data: values, ...nulls.parts });
}

function readInt64(reading: Reading): Data {
  const { block, column, zeros } = reading;
  const { rows, columns, bytes, starts, ends } = block;
  const values = new BigInt64Array(rows);
  const halves = new Int32Array(values.buffer);
  const nulls = new Nulls(rows);
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (isAbsent(reading, start, end)) {
      nulls.add(row);
      continue;
    }
    if (!zeros && hasLeadingZero(bytes, start, end)) {
      refuse(reading, row, nulls, ZERO_FIRST);
      continue;
    }
    const value = parseShortInteger(bytes, start, end);
    if (value === undefined) {
      const long = parseLongInteger(latin1(bytes, start, end));
      if (long === undefined || BigInt.asIntN(64, long) !== long)
        refuse(reading, row, nulls, wholeProblem(block, field, 'int64'));
      else values[row] = long;
    } else {
      halves[2 * row] = value;
      halves[2 * row + 1] = Math.floor(value / two32);
    }
  }
  return makeData({
    type: arrowType('int64') as Int32,
    length: rows,
    data: values as unknown as Int32Array,
    ...nulls.parts,
  });
}

function readFloats(
  reading: Reading,
  values: Float32Array | Float64Array,
  type: 'float32' | 'float64',
): Data {
  const { block, column, decimalComma } = reading;
  const { rows, columns, bytes, starts, ends } = block;
  const nulls = new Nulls(rows);
  const point = decimalComma ? COMMA : DOT;
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (isAbsent(reading, start, end)) {
      nulls.add(row);
      continue;
    }
    const value = parseDecimal(bytes, start, end, point);
    if (value !== undefined) values[row] = value;
    else
      refuse(
        reading,
        row,
        nulls,
        !decimalComma && parseDecimal(bytes, start, end, COMMA) !== undefined
          ? `${NOT_A_NUMBER} (set decimalComma: true if the decimal separator is a comma)`
          : NOT_A_NUMBER,
      );
  }
  return makeData({
    type: arrowType(type) as Int32,
    length: rows,
    data: values as unknown as Int32Array,
    ...nulls.parts,
  });
}

function readBooleans(reading: Reading): Data {
  const { block, column } = reading;
  const { rows, columns, bytes, starts, ends } = block;
  const values = new Uint8Array((rows + 7) >> 3);
  const nulls = new Nulls(rows);
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (isAbsent(reading, start, end)) {
      nulls.add(row);
      continue;
    }
    const text = latin1(bytes, start, end).trim().toLowerCase();
    if (text === 'true') values[row >> 3] |= 1 << (row & 7);
    else if (text !== 'false') refuse(reading, row, nulls, 'is neither true nor false');
  }
  return makeData({ type: arrowType('bool') as Bool, length: rows, data: values, ...nulls.parts });
}

/** Dates as days, others as microseconds; in a column of timestamps a date is its first moment. */
function readTimes(reading: Reading, type: 'date' | 'timestamp' | 'timestamp(UTC)'): Data {
  const { block, column, zeros } = reading;
  const { rows, columns, bytes, starts, ends } = block;
  const isDate = type === 'date';
  const days = new Int32Array(isDate ? rows : 0);
  const values = new BigInt64Array(isDate ? 0 : rows);
  const nulls = new Nulls(rows);
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (isAbsent(reading, start, end)) {
      nulls.add(row);
      continue;
    }
    const kind = readTime(bytes, start, end);
    if (kind === 0 || (isDate && kind !== DATE))
      refuse(reading, row, nulls, isDate ? 'is not a date such as 2024-05-31' : NO_TIME);
    else if (time.isFiner && !zeros) refuse(reading, row, nulls, FINER);
    else if (isDate) days[row] = time.days;
    else values[row] = BigInt(time.days) * MICROS_OF_DAY + BigInt(time.micros);
  }
  const data = (isDate ? days : values) as Int32Array;
  return makeData({ type: arrowType(type) as Int32, length: rows, data, ...nulls.parts });
}

function readText(reading: Reading): Data {
  const { block, column, nulls: tokens } = reading;
  const { rows, columns, bytes, starts, ends, kinds } = block;
  let total = 0;
  for (let row = 0, field = column; row < rows; row++, field += columns) total += ends[field] - starts[field];
  const values = new Uint8Array(total);
  const offsets = new Int32Array(rows + 1);
  const nulls = new Nulls(rows);
  let at = 0;
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    const kind = kinds[field];
    if (kind === BARE || kind === LITERAL) {
      if (isAbsent(reading, start, end)) nulls.add(row);
      else for (let p = start; p < end; p++) values[at++] = bytes[p];
    } else if (kind === NESTED) {
      refuse(reading, row, nulls, NESTED_VALUE);
    } else if (tokens !== undefined && kind === STRING && tokens.has(latin1(bytes, start, end))) {
      nulls.add(row);
    } else if (kind === ESCAPED_STRING) {
      const text = unescaped(bytes, start, end);
      values.set(text, at);
      at += text.length;
    } else {
      for (let p = start; p < end; p++) {
        values[at++] = bytes[p];
        if (kind === ESCAPED && bytes[p] === QUOTE) p++;
      }
    }
    offsets[row + 1] = at;
  }
  return makeData({
    type: arrowType('utf8') as Utf8,
    length: rows,
    valueOffsets: offsets,
    data: values.subarray(0, at),
    ...nulls.parts,
  });
}

/** True for "007" and "-01", false for "0" and "+0". */
export function hasLeadingZero(bytes: Uint8Array, start: number, end: number): boolean {
  while (start < end && (bytes[start] < ZERO || bytes[start] > ZERO + 9)) start++;
  return bytes[start] === ZERO && start + 1 < end && bytes[start + 1] >= ZERO && bytes[start + 1] <= ZERO + 9;
}

function wholeProblem({ bytes, starts, ends }: FieldBlock, field: number, type: TextType): string {
  return parseLongInteger(latin1(bytes, starts[field], ends[field])) === undefined
    ? NOT_WHOLE
    : `is beyond ${type}`;
}

/** Decodes a JSON string between its quotes; the result is never longer than the input. */
export function unescaped(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return Buffer.from(
    JSON.parse(
      Buffer.from(bytes.buffer, bytes.byteOffset + start - 1, end - start + 2).toString('utf8'),
    ) as string,
  );
}
