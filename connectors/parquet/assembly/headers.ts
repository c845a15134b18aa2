/**
 * Reads headers of pages, structs of Thrift's compact protocol, without trust in them: a length beyond the
 * bytes, a list longer than what is left, an integer of more than ten bytes and structs nested deeper than
 * Parquet's ever are make a header that is damaged.
 *
 *     out      Int32[4][16]: by struct and field, the number; -1 for what is not there, -2 for a number that is negative or has more than 31 bits, and for what
 *              is none, -3 for true, -4 for false, -5 for a struct. Struct 0 is the header, 1 that of a first page of values (its field 5), 2 of a dictionary (7), 3 of a second page of values (8).
 *              The header's field 4 is the page's CRC-32, all 32 bits of it; its field 0, which no header has, is 1 where field 4 is there
 *     cursor   Uint32: the address of the next byte, 0 once the header has turned out to be damaged
 *
 *
 */

const STRUCTS: u32 = 4;
const FIELDS: u32 = 16;
const MOST_DEPTH: u32 = 32;
/** The header's field with the CRC-32 of the page. */
const CRC: u64 = 4;

const TRUE: u32 = 1;
const FALSE: u32 = 2;
const BYTE: u32 = 3;
const I64: u32 = 6;
const DOUBLE: u32 = 7;
const BINARY: u32 = 8;
const LIST: u32 = 9;
const STRUCT: u32 = 12;

/** Reads the header at the beginning of some bytes to `out`; gives its length, 0 where it is damaged. */
export function readHeader(from: usize, bytes: u32, out: usize, cursor: usize): u32 {
  for (let slot: u32 = 0; slot < STRUCTS * FIELDS; slot++) store<i32>(out + (slot << 2), -1);
  store<u32>(cursor, <u32>from);
  readStruct(cursor, from + bytes, 0, 0, out);
  const end = load<u32>(cursor);
  return end == 0 ? 0 : end - <u32>from;
}

/** `number`: that of the struct, STRUCTS for one whose fields are passed over. */
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

/** The next byte; 0, which ends each struct and number, where there is none. */
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
