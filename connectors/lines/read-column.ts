import { makeData } from 'apache-arrow';
import type { Bool, Data, Int32, Utf8 } from 'apache-arrow';
import { arrowType } from './arrow-type.ts';
import {
  COMMA,
  DOT,
  latin1,
  NOT_A_NUMBER,
  NOT_WHOLE,
  parseDecimal,
  parseLongInteger,
  parseShortInteger,
} from './parse-numbers.ts';
import { isAbsent, NESTED_VALUE, Nulls, type Reading, refuse } from './column-reading.ts';
import { BARE, ESCAPED, ESCAPED_STRING, LITERAL, NESTED, STRING } from './field-block.ts';
import type { FieldBlock } from './field-block.ts';
import type { TextType } from './text-type.ts';

const QUOTE = 0x22;
const ZERO = 0x30;
const two32 = 2 ** 32;

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
