import type { TextType } from '../files/format-names.ts';
import { LITERAL, NESTED, STRING, type FieldBlock } from './field-block.ts';
import {
  COMMA,
  DOT,
  isMissing,
  isNaNText,
  latin1,
  parseDecimal,
  parseLongInteger,
  parseShortInteger,
} from './parse-numbers.ts';
import { readTime, time } from './parse-times.ts';
import { hasLeadingZero, type ValueRules } from './read-column.ts';

/**
 * Kinds of fields that occur in a column, as bits, so that several blocks or files are combined by `or`.
 * `comma`: a number such as 4,5 although the comma is not the decimal separator.
 */
const SEEN = {
  int32: 1,
  int64: 2,
  beyond: 4,
  decimal: 8,
  nan: 16,
  text: 32,
  comma: 64,
  literal: 128,
  nested: 256,
  date: 512,
  local: 1024,
  zoned: 2048,
} as const;
const TIMES = SEEN.date | SEEN.local | SEEN.zoned;
/** Kinds of times, by the result of readTime; a time finer than microseconds is text. */
const kindsOfTimes = [SEEN.text, SEEN.date, SEEN.local, SEEN.zoned];
/** Texts, among numbers. */
const TEXTS = SEEN.text | TIMES;
const NUMERIC = SEEN.int32 | SEEN.int64 | SEEN.beyond | SEEN.decimal | SEEN.nan;

/** Kinds of JSON fields that are not strings or numbers. */
const kindsOfJson: Readonly<Record<number, number>> = { [LITERAL]: SEEN.literal, [NESTED]: SEEN.nested };

/** Kinds of fields in a column of the block, in rows `from` to `to`. */
export function kindsIn(
  block: FieldBlock,
  column: number,
  rules: ValueRules,
  from = 0,
  to = block.rows,
): number {
  let seen = 0;
  for (let row = from; row < to && !isSettled(seen); row++) seen |= kindOf(block, row, column, rules);
  return seen;
}

/**
 * True if no further field can change the column's type or a report about it: the column has both texts and
 * numbers.
 */
export function isSettled(seen: number): boolean {
  return seen >= SEEN.text && (seen & NUMERIC) !== 0;
}

/** Kind of one field. */
export function kindOf(
  {
    bytes,
    starts,
    ends,
    kinds,
    columns,
  }: Pick<FieldBlock, 'bytes' | 'starts' | 'ends' | 'kinds' | 'columns'>,
  row: number,
  column: number,
  rules: ValueRules,
): number {
  const { nulls } = rules;
  const field = row * columns + column;
  const start = starts[field];
  const end = ends[field];
  if (kinds[field] >= STRING) return kindsOfJson[kinds[field]] ?? kindOfTime(bytes, start, end);
  if (start === end || nulls?.has(latin1(bytes, start, end))) return 0;
  if (!beginsLikeNumber(bytes[start]))
    return nulls === undefined && isMissing(bytes, start, end) ? 0 : SEEN.text;
  const short = parseShortInteger(bytes, start, end);
  if (short === undefined) return kindOfRest(bytes, start, end, rules);
  if (hasLeadingZero(bytes, start, end)) return SEEN.text;
  return short === (short | 0) ? SEEN.int32 : SEEN.int64;
}

/** The kind of a text that may be a time. */
function kindOfTime(bytes: Uint8Array, start: number, end: number): number {
  const kind = kindsOfTimes[readTime(bytes, start, end)];
  return time.isFiner ? SEEN.text : kind;
}

/** The kind of a field that starts like a number but is not an integer of at most 15 digits. */
function kindOfRest(
  bytes: Uint8Array,
  start: number,
  end: number,
  { decimalComma, nulls }: ValueRules,
): number {
  const ofTime = kindOfTime(bytes, start, end);
  if (ofTime !== SEEN.text) return ofTime;
  const long = end - start < 16 ? undefined : parseLongInteger(latin1(bytes, start, end));
  if (long !== undefined) {
    if (hasLeadingZero(bytes, start, end)) return SEEN.text;
    return BigInt.asIntN(64, long) === long ? SEEN.int64 : SEEN.beyond;
  }
  const decimal = parseDecimal(bytes, start, end, decimalComma ? COMMA : DOT);
  if (decimal !== undefined)
    return Number.isNaN(decimal) && isNaNText(bytes, start, end) ? SEEN.nan : SEEN.decimal;
  if (nulls === undefined && isMissing(bytes, start, end)) return 0;
  const isCommaDecimal = !decimalComma && parseDecimal(bytes, start, end, COMMA) !== undefined;
  return isCommaDecimal ? SEEN.text | SEEN.comma : SEEN.text;
}

/**
 * Quick test before parsing: true for the first characters of numbers (digits, signs, points, spaces, and
 * the first letters of "nan" and "inf").
 */
function beginsLikeNumber(byte: number): boolean {
  return (byte >= 0x2b && byte <= 0x39) || byte === 0x20 || (byte | 0x20) === 0x6e || (byte | 0x20) === 0x69;
}

interface TextSearch {
  /** First row to read. */
  readonly from: number;
  readonly most: number;
}

/**
 * Rows whose field in the column is text, in a column of whole numbers and nulls. Undefined if the column has
 * values of other kinds, or more than `most` texts. Whole numbers with leading zeros make a column text, so
 * they do not count as exceptions here.
 */
export function textsAmongWhole(
  block: FieldBlock,
  column: number,
  rules: ValueRules,
  { from, most }: TextSearch,
): number[] | undefined {
  const rows: number[] = [];
  for (let row = from; row < block.rows; row++) {
    const kind = kindOf(block, row, column, rules);
    if (kind === 0 || isWhole(kind)) continue;
    const field = row * block.columns + column;
    const isZeroed = hasLeadingZero(block.bytes, block.starts[field], block.ends[field]);
    if ((kind & ~TEXTS) !== 0 || isZeroed || rows.push(row) > most) return undefined;
  }
  return rows;
}

/** True if all values are whole numbers of at most 64 bits. */
function isWhole(seen: number): boolean {
  return seen !== 0 && (seen & ~(SEEN.int32 | SEEN.int64)) === 0;
}

/** True if the values are both texts and whole numbers of at most 64 bits, and of no other kind. */
export function isTextAndWhole(seen: number): boolean {
  return (seen & TEXTS) !== 0 && isWhole(seen & ~TEXTS);
}

/** True if the values are numbers or times. */
export function isTyped(seen: number): boolean {
  return isNumeric(seen) || (seen !== 0 && (seen & ~TIMES) === 0);
}

export function isNumeric(seen: number): boolean {
  return seen !== 0 && seen < SEEN.text;
}

/** True if any field is a date or time. */
export function hasTimes(seen: number): boolean {
  return (seen & TIMES) !== 0;
}

/** True if any field is a number, or would be one with decimal commas. */
export function hasNumbers(seen: number): boolean {
  return (seen & (NUMERIC | SEEN.comma)) !== 0;
}

/**
 * The narrowest type that holds all values of these kinds: int32, int64, float64, date, timestamp (of UTC if
 * a text has an offset), utf8, or bool for JSON's true and false. Also text are whole numbers with leading
 * zeros (they are ids), whole numbers beyond 64 bits unless the column also has decimals, dates among
 * timestamps, and columns of only nulls. NaN in a column of whole numbers becomes null.
 */
export function typeOfKinds(seen: number): TextType {
  if (seen === SEEN.literal) return 'bool';
  if (seen === SEEN.date) return 'date';
  if (seen > SEEN.date && (seen & ~TIMES) === 0 && (seen & SEEN.date) === 0)
    return seen & SEEN.zoned ? 'timestamp(UTC)' : 'timestamp';
  if (seen === 0 || seen >= SEEN.text) return 'utf8';
  if (seen & SEEN.decimal || seen === SEEN.nan) return 'float64';
  if (seen & SEEN.beyond) return 'utf8';
  return seen & SEEN.int64 ? 'int64' : 'int32';
}
