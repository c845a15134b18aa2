/**
 * Reads rows of separated text as numbers and texts, as long as rows are plain: without quotes, with every
 * field, and with short numbers (connectors/lines/plain-rows.ts has the definition and the same reading
 * codes). Handles 16 bytes of a field at once: the mask of its digits gives its length; its digits are moved
 * to the right end and summed in pairs
 *
 *     0 0 .. 0 1 2 3 4 5   ->   0 0 .. 0 1 23 45   ->   .. 0 12345
 *
 * A column is described by four Int32: the reading code; 1 if leading zeros are allowed; the address of its
 * values (for text: of the starts of its texts); the address of the ends of its texts.
 */
const INT32: i32 = 1;
const INT64: i32 = 2;
const FLOAT32: i32 = 3;
const FLOAT64: i32 = 4;
const TEXT: i32 = 5;

const LF: i32 = 0x0a;
const CR: i32 = 0x0d;
const QUOTE: i32 = 0x22;
const MINUS: i32 = 0x2d;
const ZERO: i32 = 0x30;

/** Most digits of a number; with at most 15 digits it is exact in float64. */
const MOST_DIGITS: i32 = 15;

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
  for (let column = columns; column < end; column += 16) {
    const reading = load<i32>(column);
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
    } else {
      const start = p;
      if (quotes != 0 && load<u8>(p) == QUOTE) return 0;
      p = endOfField(p, delimiter);
      if (reading == TEXT) {
        const stop = load<u8>(p) == LF && p > start && load<u8>(p - 1) == CR ? p - 1 : p;
        if (stop == start) return 0;
        store<u32>(<usize>load<u32>(column, 8) + (row << 2), <u32>start);
        store<u32>(<usize>load<u32>(column, 12) + (row << 2), <u32>stop);
      }
    }
    const mark = <i32>load<u8>(p);
    if (column + 16 < end) {
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
  const end = columns + ((<usize>count) << 4);
  let row: usize = 0;
  while (row < <usize>most && from < last) {
    const next = readRow(from, row, columns, end, delimiter, quotes, point);
    if (next == 0 || next > to) break;
    from = next;
    row++;
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
