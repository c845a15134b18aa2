import { daysOf } from '../../engine/expressions/civil.ts';

const ZERO = 0x30;
const SPACE = 0x20;
const MINUS = 0x2d;
const PLUS = 0x2b;
const COLON = 0x3a;
const [DOT, T, Z] = [0x2e, 0x54, 0x5a];

/** Kinds of ISO texts; 0 for other texts. */
export const DATE = 1;
export const LOCAL = 2;
export const ZONED = 3;

/** The time that `readTime` read last: days since 1970, and microseconds since the start of that day. */
export const time = {
  days: 0,
  micros: 0,
  /** True if the text has digits beyond microseconds that are not zero. */
  isFiner: false,
};

/**
 * Reads an ISO 8601 text in `bytes[from..to)`, with spaces around it ignored, and returns its kind:
 *
 *     2023-11-05                         DATE
 *     2023-11-05T08:40  2023-11-05 08:40:00.123     LOCAL
 *     2023-11-05T08:40:00Z  … +02:00  … +0200  … +02    ZONED; `time` is in UTC
 *
 * Digits beyond microseconds are left out. The WebAssembly kernel (assembly/plain-rows.ts) reads the same
 * texts, but for spaces and more than six digits.
 */
export function readTime(bytes: Uint8Array, from: number, to: number): number {
  let p = from;
  let end = to;
  while (p < end && bytes[p] === SPACE) p++;
  while (end > p && bytes[end - 1] === SPACE) end--;
  if (end - p < 10 || !readDate(bytes, p)) return 0;
  p += 10;
  if (p === end) return DATE;
  if (end - p < 6 || (bytes[p] !== T && bytes[p] !== SPACE) || bytes[p + 3] !== COLON) return 0;
  const hour = twoDigits(bytes, p + 1);
  const minute = twoDigits(bytes, p + 4);
  return hour < 24 && minute < 60 ? readSeconds(bytes, p + 6, end, 60 * hour + minute) : 0;
}

/** Reads ten bytes as `2023-11-05` into `time`. */
function readDate(bytes: Uint8Array, p: number): boolean {
  if (bytes[p + 4] !== MINUS || bytes[p + 7] !== MINUS) return false;
  const year = 100 * twoDigits(bytes, p) + twoDigits(bytes, p + 2);
  const month = twoDigits(bytes, p + 5);
  const day = twoDigits(bytes, p + 8);
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysOfMonth(year, month))) return false;
  time.days = daysOf(year, month, day);
  time.micros = 0;
  time.isFiner = false;
  return true;
}

/** Reads what follows the minutes. */
function readSeconds(bytes: Uint8Array, from: number, end: number, minutes: number): number {
  let p = from;
  let micros = 60e6 * minutes;
  if (p < end && bytes[p] === COLON) {
    const second = twoDigits(bytes, p + 1);
    if (end - p < 3 || !(second < 60)) return 0;
    micros += 1e6 * second;
    p += 3;
    if (p < end && bytes[p] === DOT) {
      const first = ++p;
      for (let unit = 1e5; p < end && isDigit(bytes[p]); p++, unit /= 10) {
        if (unit >= 1) micros += (bytes[p] - ZERO) * unit;
        else if (bytes[p] !== ZERO) time.isFiner = true;
      }
      if (p === first || p - first > 9) return 0;
    }
  }
  time.micros = micros;
  if (p === end) return LOCAL;
  if (bytes[p] === Z && p + 1 === end) return ZONED;
  return readOffset(bytes, p, end) ? ZONED : 0;
}

/** Reads `+02`, `+0200` or `+02:00` up to `end`, and brings `time` to UTC. */
function readOffset(bytes: Uint8Array, p: number, end: number): boolean {
  const sign = bytes[p] === PLUS ? 1 : bytes[p] === MINUS ? -1 : 0;
  const colon = bytes[p + 3] === COLON ? 1 : 0;
  const size = end - p;
  const hours = twoDigits(bytes, p + 1);
  const minutes = size === 3 ? 0 : twoDigits(bytes, p + 3 + colon);
  if (sign === 0 || (size !== 3 && size !== 5 + colon) || !(hours < 24 && minutes < 60)) return false;
  time.micros -= sign * 60e6 * (60 * hours + minutes);
  return true;
}

function daysOfMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return 30 + ((month + (month >> 3)) & 1);
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= ZERO + 9;
}

/** The number of two digits at `p`; NaN for other bytes. */
function twoDigits(bytes: Uint8Array, p: number): number {
  return isDigit(bytes[p]) && isDigit(bytes[p + 1])
    ? 10 * (bytes[p] - ZERO) + bytes[p + 1] - ZERO
    : Number.NaN;
}
