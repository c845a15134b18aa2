const SPACE = 0x20;
const MINUS = 0x2d;
const PLUS = 0x2b;
export const DOT = 0x2e;
export const COMMA = 0x2c;
const ZERO = 0x30;

/**
 * Powers of ten that float64 represents exactly. Dividing a whole number below 2^53 by one of them rounds
 * only once, so the result is the nearest float64 to the decimal.
 */
const powersOfTen = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));
const decimal = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const special = /^[+-]?(nan|inf|infinity)$/i;

/** Faults of a field that should be a number. */
export const NOT_A_NUMBER = 'is not a number';
export const NOT_WHOLE = 'is not a whole number';

/** Texts for a missing number, unless the user gives others. */
const missing = new Set(['NA', 'N/A', '#N/A', 'NULL', 'Null', 'null', 'None', '\\N']);
const nan = /^ *[+-]?nan *$/i;

/** True for a usual text of a missing number. */
export function isMissing(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start < 16 && missing.has(latin1(bytes, start, end).trim());
}

/** True for NaN in upper, lower or mixed case. */
export function isNaNText(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start < 16 && nan.test(latin1(bytes, start, end));
}

function afterSpaces(bytes: Uint8Array, from: number, to: number): number {
  let p = from;
  while (p < to && bytes[p] === SPACE) p++;
  return p;
}

function beforeSpaces(bytes: Uint8Array, from: number, to: number): number {
  let p = to;
  while (p > from && bytes[p - 1] === SPACE) p--;
  return p;
}

/**
 * The whole number in `bytes[from..to)` as a double, with spaces around it ignored; undefined for other text
 * and for more than 15 digits.
 */
export function parseShortInteger(bytes: Uint8Array, from: number, to: number): number | undefined {
  let start = afterSpaces(bytes, from, to);
  const end = beforeSpaces(bytes, start, to);
  const negative = bytes[start] === MINUS;
  if (negative || bytes[start] === PLUS) start++;
  if (start >= end || end - start > 15) return undefined;
  let value = 0;
  for (let p = start; p < end; p++) {
    const digit = bytes[p] - ZERO;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  // 0 - value gives 0 for "-0", where -value would give -0.
  return negative ? 0 - value : value;
}

/**
 * A whole number; undefined for other text. Of a number with more than 40 digits, only the first 40 are
 * converted. Slow: meant for the few numbers with more than 15 digits.
 */
export function parseLongInteger(text: string): bigint | undefined {
  const match = /^ *([+-]?)(\d+) *$/.exec(text);
  if (match === null) return undefined;
  // A number of 40 digits is out of the range of every type. So is a longer one, and callers need no more
  // than that.
  const digits = match[2].replace(/^0+(?=.)/, '').slice(0, 40);
  return match[1] === '-' ? -BigInt(digits) : BigInt(digits);
}

/**
 * The number in `bytes[from..to)` as the nearest double, with spaces around it ignored; also nan, inf and
 * infinity in upper, lower or mixed case. Undefined for other text. `point`: the decimal separator.
 */
export function parseDecimal(bytes: Uint8Array, from: number, to: number, point = DOT): number | undefined {
  const start = afterSpaces(bytes, from, to);
  const end = beforeSpaces(bytes, start, to);
  let p = start;
  const negative = bytes[p] === MINUS;
  if (negative || bytes[p] === PLUS) p++;
  let mantissa = 0;
  let digits = 0;
  let places = 0;
  let afterDot = false;
  for (; p < end; p++) {
    const digit = bytes[p] - ZERO;
    if (digit >= 0 && digit <= 9) {
      mantissa = mantissa * 10 + digit;
      digits++;
      if (afterDot) places++;
    } else if (bytes[p] === point && !afterDot) afterDot = true;
    else return parseRareDecimal(latin1(bytes, start, end), point);
  }
  if (digits === 0 || digits > 15) return parseRareDecimal(latin1(bytes, start, end), point);
  const value = places === 0 ? mantissa : mantissa / powersOfTen[places];
  return negative ? -value : value;
}

function parseRareDecimal(given: string, point: number): number | undefined {
  // Replaces the decimal comma by a point; a point in the text then makes it invalid.
  const text = point === COMMA ? given.replace(/[.,]/, (mark) => (mark === ',' ? '.' : '?')) : given;
  if (decimal.test(text)) return Number(text);
  if (!special.test(text)) return undefined;
  const value = /nan/i.test(text) ? Number.NaN : Number.POSITIVE_INFINITY;
  return text.startsWith('-') ? -value : value;
}

/** The text of a field that may be a number; empty when it is longer than 1,024 bytes. */
export function latin1(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  if (end - start > 1024) return text;
  for (let p = start; p < end; p++) text += String.fromCharCode(bytes[p]);
  return text;
}
