/**
 * Reads page headers: structs of Thrift's compact protocol, which may be damaged. A header counts as damaged
 * if it has a length beyond its bytes, a list longer than the rest, an integer of more than ten bytes, or
 * structs nested deeper than Parquet's. Results and position are in memory at the addresses `out` and
 * `cursor`:
 *
 *     out      Int32[4][16]: one number for each struct and field.
 *              -1 absent, -2 negative or more than 31 bits, and for other types: -3 true, -4 false, -5 struct.
 *              Structs: 0 the header, 1 its data page of version 1 (field 5), 2 its dictionary (field 7), 3 its
 *              data page of version 2 (field 8). Field 4 of the header is the page's CRC-32, with all 32 bits.
 *              Field 0, which no header uses, is 1 if field 4 is present.
 *     cursor   Uint32: address of the next byte; 0 if the header is damaged
 */

const STRUCTS: u32 = 4;
const FIELDS: u32 = 16;
const MOST_DEPTH: u32 = 32;
/** Field of the header with the page's CRC-32. */
const CRC: u64 = 4;

const TRUE: u32 = 1;
const FALSE: u32 = 2;
const BYTE: u32 = 3;
const I64: u32 = 6;
const DOUBLE: u32 = 7;
const BINARY: u32 = 8;
const LIST: u32 = 9;
const STRUCT: u32 = 12;

/** Reads the header at the start of some bytes into `out`. Returns its length, or 0 if it is damaged. */
export function readHeader(from: usize, bytes: u32, out: usize, cursor: usize): u32 {
  for (let slot: u32 = 0; slot < STRUCTS * FIELDS; slot++) store<i32>(out + (slot << 2), -1);
  store<u32>(cursor, <u32>from);
  readStruct(cursor, from + bytes, 0, 0, out);
  const end = load<u32>(cursor);
  return end == 0 ? 0 : end - <u32>from;
}

/** `number`: number of the struct; STRUCTS for a struct whose fields are skipped. */
function readStruct(cursor: usize, end: usize, depth: u32, number: u32, out: usize): void {
  if (depth > MOST_DEPTH) return fail(cursor);
  let field: u64 = 0;
  for (;;) {
    const head = byteAt(cursor, end);
    const type = head & 15;
    if (type == 0) return;
    field = head >> 4 == 0 ? <u64>zigzag(varint(cursor, end)) : field + (head >> 4);
    const slot = number < STRUCTS && field < FIELDS ? out + ((number * FIELDS + <u32>field) << 2) : 0;
    if (type == TRUE || type == FALSE) put(slot, type == TRUE ? -3 : -4);
    else if (type > BYTE && type <= I64) {
      const value = zigzag(varint(cursor, end));
      const isSum = number == 0 && field == CRC;
      put(slot, isSum || (value >= 0 && value <= 0x7fffffff) ? <i32>value : -2);
      if (isSum) put(out, 1);
    } else if (type == STRUCT) {
      put(slot, -5);
      readStruct(
        cursor,
        end,
        depth + 1,
        number == 0 ? (field == 5 ? 1 : field == 7 ? 2 : field == 8 ? 3 : STRUCTS) : STRUCTS,
        out,
      );
    } else {
      put(slot, -2);
      skipValue(cursor, end, depth, type);
    }
  }
}

function skipValue(cursor: usize, end: usize, depth: u32, type: u32): void {
  if (type > BYTE && type <= I64) varint(cursor, end);
  else if (type == BINARY) skip(cursor, end, varint(cursor, end));
  else if (type == STRUCT) readStruct(cursor, end, depth + 1, STRUCTS, 0);
  else if (type == LIST) skipList(cursor, end, depth + 1);
  else if (type == DOUBLE) skip(cursor, end, 8);
  else if (type > 0 && type <= BYTE) skip(cursor, end, 1);
  else fail(cursor);
}

function skipList(cursor: usize, end: usize, depth: u32): void {
  if (depth > MOST_DEPTH) return fail(cursor);
  const head = byteAt(cursor, end);
  const length = head >> 4 == 15 ? varint(cursor, end) : <u64>(head >> 4);
  if (length > <u64>(end - load<u32>(cursor))) return fail(cursor);
  for (let i: u64 = 0; i < length && load<u32>(cursor) != 0; i++) skipValue(cursor, end, depth, head & 15);
}

function varint(cursor: usize, end: usize): u64 {
  let value: u64 = 0;
  for (let shift: u64 = 0; shift < 70; shift += 7) {
    const byte = byteAt(cursor, end);
    value |= (<u64>(byte & 127)) << shift;
    if (byte < 128) return value;
  }
  fail(cursor);
  return 0;
}

@inline
function zigzag(value: u64): i64 {
  return <i64>(value >> 1) ^ -(<i64>(value & 1));
}

/** The next byte; at the end of the bytes 0, which ends every struct and number. */
function byteAt(cursor: usize, end: usize): u32 {
  const at = load<u32>(cursor);
  skip(cursor, end, 1);
  return load<u32>(cursor) == 0 ? 0 : load<u8>(at);
}

function skip(cursor: usize, end: usize, length: u64): void {
  const at = load<u32>(cursor);
  store<u32>(cursor, at == 0 || length > <u64>(end - at) ? 0 : at + <u32>length);
}

@inline
function put(slot: usize, value: i32): void {
  if (slot != 0) store<i32>(slot, value);
}

@inline
function fail(cursor: usize): void {
  store<u32>(cursor, 0);
}
