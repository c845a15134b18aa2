/**
 * Reads rows of separated text as numbers, times and texts, as long as rows are plain: without quotes, with
 * short numbers and ISO times (connectors/lines/plain-rows.ts has the definition and the same reading codes). Handles 16 bytes of a field at once: the mask of its digits gives its length; its digits are moved
 * to the right end and summed in pairs
 *
 *     0 0 .. 0 1 2 3 4 5   ->   0 0 .. 0 1 23 45   ->   .. 0 12345
 *
 * A column is described by eight Int32:
 *
 *      0  reading code
 *      4  1 if leading zeros are allowed
 *      8  address of its values; for text, of the starts of its texts
 *     12  address of the ends of its texts
 *     16  address of its null bitmap, of ones
 *     20  number of nulls, increased for each empty field
 */
const SKIP: i32 = 0;
const INT32: i32 = 1;
const INT64: i32 = 2;
const FLOAT32: i32 = 3;
const FLOAT64: i32 = 4;
const TEXT: i32 = 5;
const DATE: i32 = 6;
const TIMESTAMP: i32 = 7;

const LF: i32 = 0x0a;
const CR: i32 = 0x0d;
const QUOTE: i32 = 0x22;
const PLUS: i32 = 0x2b;
const MINUS: i32 = 0x2d;
const DOT: i32 = 0x2e;
const SPACE: i32 = 0x20;
const T: i32 = 0x54;
const Z: i32 = 0x5a;
const COLON: i32 = 0x3a;
const ZERO: i32 = 0x30;

/** Most digits of a number; with at most 15 digits it is exact in float64. */
const MOST_DIGITS: i32 = 15;

/** Bytes that describe a column. */
const DESCRIPTION: usize = 32;

/** The number of digits at the start of 16 bytes. */
@inline
function countDigits(digits: v128): i32 {
  return ctz(~i8x16.bitmask(i8x16.le_u(digits, i8x16.splat(9))));
}

/** The number made of the first `count` digits. */
@inline
function numberOf(digits: v128, count: i32): i64 {
  const places = i8x16.add(
    i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    i8x16.splat(<i8>(count - 16)),
  );
  const right = i8x16.swizzle(digits, places);
  const pairs = i16x8.add(
    i16x8.mul(v128.and(right, i16x8.splat(0xff)), i16x8.splat(10)),
    i16x8.shr_u(right, 8),
  );
  const fours = i32x4.dot_i16x8_s(pairs, i16x8(100, 1, 100, 1, 100, 1, 100, 1));
  const low = i32x4.extract_lane(fours, 2) * 10000 + i32x4.extract_lane(fours, 3);
  if (count <= 8) return <i64>low;
  return <i64>(i32x4.extract_lane(fours, 0) * 10000 + i32x4.extract_lane(fours, 1)) * 100000000 + <i64>low;
}

@inline
function powerOfTen(exponent: i32): f64 {
  let power: f64 = 1;
  for (let i = 0; i < exponent; i++) power *= 10;
  return power;
}

/** The number of two digits at `p`; -1 for other bytes. */
@inline
function twoDigits(p: usize): i32 {
  const tens = <u32>load<u8>(p) - ZERO;
  const ones = <u32>load<u8>(p, 1) - ZERO;
  return tens > 9 || ones > 9 ? -1 : <i32>(10 * tens + ones);
}

/** Howard Hinnant, chrono-compatible low-level date algorithms, from March of the year -400. */
@inline
function daysOf(year: i32, month: i32, day: i32): i32 {
  const y = year + 400 - i32(month <= 2);
  const era = y / 400;
  const ofEra = y - era * 400;
  const ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return (era - 1) * 146097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719468;
}

@inline
function daysOfMonth(year: i32, month: i32): i32 {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return 30 + ((month + (month >> 3)) & 1);
}

/** The value that readTime read last: days, or microseconds, since 1970. */
let time: i64 = 0;

/**
 * Reads an ISO date, or a date and time, at `p`. Returns the address after it, or 0 for other texts.
 *
 *     2023-11-05T08:40:00.123+02:00
 *     ^ first 16 bytes^
 */
function readTime(p: usize, reading: i32): usize {
  const digits = i8x16.sub(v128.load(p), i8x16.splat(<i8>ZERO));
  const marks = i8x16.bitmask(i8x16.le_u(digits, i8x16.splat(9)));
  if ((marks & 0x3ff) != 0x36f || load<u8>(p, 4) != MINUS || load<u8>(p, 7) != MINUS) return 0;
  const places = i8x16.swizzle(digits, i8x16(0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 16, 16, 16, 16));
  const pairs = i16x8.add(
    i16x8.mul(v128.and(places, i16x8.splat(0xff)), i16x8.splat(10)),
    i16x8.shr_u(places, 8),
  );
  const year = <i32>i16x8.extract_lane_s(pairs, 0) * 100 + <i32>i16x8.extract_lane_s(pairs, 1);
  const month = <i32>i16x8.extract_lane_s(pairs, 2);
  const day = <i32>i16x8.extract_lane_s(pairs, 3);
  if (month < 1 || month > 12 || day < 1 || day > daysOfMonth(year, month)) return 0;
  const days = daysOf(year, month, day);
  if (reading == DATE) {
    time = days;
    return p + 10;
  }
  const hour = <i32>i16x8.extract_lane_s(pairs, 4);
  const minute = <i32>i16x8.extract_lane_s(pairs, 5);
  const mark = load<u8>(p, 10);
  if ((marks & 0xd800) != 0xd800 || (mark != T && mark != SPACE) || load<u8>(p, 13) != COLON) return 0;
  if (hour > 23 || minute > 59) return 0;
  let minutes = <i64>days * 1440 + 60 * hour + minute;
  p += 16;
  let micros: i64 = 0;
  if (load<u8>(p) == COLON) {
    const second = twoDigits(p + 1);
    if (second < 0 || second > 59) return 0;
    micros = <i64>second * 1000000;
    p += 3;
    if (load<u8>(p) == DOT) {
      const part = i8x16.sub(v128.load(p + 1), i8x16.splat(<i8>ZERO));
      const count = countDigits(part);
      if (count == 0 || count > 6) return 0;
      let fraction = numberOf(part, count);
      for (let place = count; place < 6; place++) fraction *= 10;
      micros += fraction;
      p += 1 + count;
    }
  }
  const sign = load<u8>(p);
  if (sign == Z) p++;
  else if (sign == PLUS || sign == MINUS) {
    const hours = twoDigits(p + 1);
    p += 3;
    if (hours < 0 || hours > 23) return 0;
    let offset = 60 * hours;
    const colon = <usize>(load<u8>(p) == COLON);
    const rest = twoDigits(p + colon);
    if (rest > 59 || (rest < 0 && colon == 1)) return 0;
    if (rest >= 0) {
      offset += rest;
      p += colon + 2;
    }
    minutes += sign == PLUS ? -offset : offset;
  }
  time = minutes * 60000000 + micros;
  return p;
}

/** Makes the column's value in the row null. */
@inline
function addNull(column: usize, reading: i32, row: usize): void {
  const values = <usize>load<u32>(column, 8);
  if (reading == INT64 || reading == FLOAT64 || reading == TIMESTAMP) store<i64>(values + (row << 3), 0);
  else store<i32>(values + (row << 2), 0);
  if (reading == TEXT) store<i32>(<usize>load<u32>(column, 12) + (row << 2), 0);
  const bits = <usize>load<u32>(column, 16) + (row >> 3);
  store<u8>(bits, load<u8>(bits) & ~(<u8>1 << <u8>(row & 7)));
  store<i32>(column, load<i32>(column, 20) + 1, 20);
}

/** Address of the first delimiter or line end at or after p. */
@inline
function endOfField(p: usize, delimiter: i32): usize {
  let marks = 0;
  for (;;) {
    const bytes = v128.load(p);
    marks = i8x16.bitmask(
      v128.or(i8x16.eq(bytes, i8x16.splat(<i8>delimiter)), i8x16.eq(bytes, i8x16.splat(<i8>LF))),
    );
    if (marks != 0) break;
    p += 16;
  }
  return p + ctz(marks);
}

/**
 * Reads the row at `p` into row `row` of the columns. Returns the address after it, or 0 if the row is not
 * plain.
 */
@inline
function readRow(
  p: usize,
  row: usize,
  columns: usize,
  end: usize,
  delimiter: i32,
  quotes: i32,
  point: i32,
): usize {
  for (let column = columns; column < end; column += DESCRIPTION) {
    const reading = load<i32>(column);
    const isLast = column + DESCRIPTION == end;
    const first = <i32>load<u8>(p);
    if (
      reading != SKIP &&
      (isLast ? first == LF || (first == CR && load<u8>(p, 1) == LF) : first == delimiter)
    ) {
      addNull(column, reading, row);
      p += isLast && first == CR ? 2 : 1;
      continue;
    }
    if (reading == INT32 || reading == INT64) {
      const negative = load<u8>(p) == MINUS;
      if (negative) p++;
      const digits = i8x16.sub(v128.load(p), i8x16.splat(<i8>ZERO));
      const length = countDigits(digits);
      if (
        length == 0 ||
        length > MOST_DIGITS ||
        (load<u8>(p) == ZERO && length > 1 && load<i32>(column, 4) == 0)
      )
        return 0;
      const size = numberOf(digits, length);
      const value = negative ? -size : size;
      if (reading == INT64) store<i64>(<usize>load<u32>(column, 8) + (row << 3), value);
      else if (value != <i64>(<i32>value)) return 0;
      else store<i32>(<usize>load<u32>(column, 8) + (row << 2), <i32>value);
      p += length;
    } else if (reading == FLOAT32 || reading == FLOAT64) {
      const negative = load<u8>(p) == MINUS;
      if (negative) p++;
      const whole = i8x16.sub(v128.load(p), i8x16.splat(<i8>ZERO));
      let length = countDigits(whole);
      if (length > MOST_DIGITS) return 0;
      let size: f64 = length > 0 ? <f64>numberOf(whole, length) : 0;
      p += length;
      if (load<u8>(p) == point && point != delimiter) {
        p++;
        const part = i8x16.sub(v128.load(p), i8x16.splat(<i8>ZERO));
        const places = countDigits(part);
        length += places;
        if (length > MOST_DIGITS) return 0;
        if (places > 0) {
          const power = powerOfTen(places);
          size = (size * power + <f64>numberOf(part, places)) / power;
        }
        p += places;
      }
      if (length == 0) return 0;
      if (negative) size = -size;
      const values = <usize>load<u32>(column, 8);
      if (reading == FLOAT64) store<f64>(values + (row << 3), size);
      else store<f32>(values + (row << 2), <f32>size);
    } else if (reading == DATE || reading == TIMESTAMP) {
      p = readTime(p, reading);
      if (p == 0) return 0;
      const values = <usize>load<u32>(column, 8);
      if (reading == TIMESTAMP) store<i64>(values + (row << 3), time);
      else store<i32>(values + (row << 2), <i32>time);
    } else {
      const start = p;
      if (quotes != 0 && load<u8>(p) == QUOTE) return 0;
      p = endOfField(p, delimiter);
      if (reading == TEXT) {
        const stop = load<u8>(p) == LF && p > start && load<u8>(p - 1) == CR ? p - 1 : p;
        store<u32>(<usize>load<u32>(column, 8) + (row << 2), <u32>start);
        store<u32>(<usize>load<u32>(column, 12) + (row << 2), <u32>stop);
      }
    }
    const mark = <i32>load<u8>(p);
    if (!isLast) {
      if (mark != delimiter) return 0;
    } else if (mark == CR && load<u8>(p + 1) == LF && reading != TEXT) p++;
    else if (mark != LF) return 0;
    p++;
  }
  return p;
}

/**
 * Reads at most `most` rows that start in from..last. Stops at the first row that is not plain, and stores
 * its address at `reached`. Returns the number of rows. The byte at `to` must be a line end, and 16 bytes
 * after it must be readable.
 */
export function scanRows(
  from: usize,
  last: usize,
  to: usize,
  most: i32,
  columns: usize,
  count: i32,
  delimiter: i32,
  quotes: i32,
  point: i32,
  reached: usize,
): i32 {
  const end = columns + <usize>count * DESCRIPTION;
  let row: usize = 0;
  while (row < <usize>most && from < last) {
    const next = readRow(from, row, columns, end, delimiter, quotes, point);
    if (next == 0 || next > to) break;
    from = next;
    row++;
  }
  // A row that is not plain may have added nulls.
  if (row < <usize>most)
    for (let column = columns; column < end; column += DESCRIPTION) {
      const nulls = load<i32>(column, 20);
      if (nulls == 0) continue;
      const bits = <usize>load<u32>(column, 16) + (row >> 3);
      if (((<i32>load<u8>(bits) >> (<i32>row & 7)) & 1) == 0) store<i32>(column, nulls - 1, 20);
    }
  store<u32>(reached, <u32>from);
  return <i32>row;
}

/**
 * Copies texts one after the other to `target`, and writes their `rows` + 1 offsets. 16 bytes after the last
 * text may be overwritten. Returns the number of bytes of text.
 */
export function copyTexts(starts: usize, ends: usize, rows: i32, offsets: usize, target: usize): i32 {
  const beginning = target;
  store<u32>(offsets, 0);
  for (let row: usize = 0; row < <usize>rows; row++) {
    const start = <usize>load<u32>(starts + (row << 2));
    const length = <usize>load<u32>(ends + (row << 2)) - start;
    for (let at: usize = 0; at < length; at += 16) v128.store(target + at, v128.load(start + at));
    target += length;
    store<u32>(offsets + ((row + 1) << 2), <u32>(target - beginning));
  }
  return <i32>(target - beginning);
}
