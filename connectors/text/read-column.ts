import { makeData } from 'apache-arrow';
import type { Data, Int32, Utf8 } from 'apache-arrow';
import { arrowType } from './arrow-type.ts';
import { latin1, NOT_A_NUMBER, NOT_WHOLE, parseDecimal, parseLongInteger, parseShortInteger } from './parse-numbers.ts';
import { BARE, ESCAPED } from './record-scanner.ts';
import type { FieldBlock } from './record-scanner.ts';
import type { TextType } from './text-type.ts';

const QUOTE = 0x22;
const ZERO = 0x30;
const two32 = 2 ** 32;

/** A field that is not a value of its column's type. */
export class FieldProblem extends Error {
  readonly row: number;
  readonly column: number;
  constructor(message: string, row: number, column: number) {
    super(message);
    this.row = row;
    this.column = column;
  }
}

/** Arrow's bitmap of nulls, which is made at the first one. */
class Nulls {
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

/**
 * One column of a scanned block as Arrow data. Empty fields are null (in columns of numbers also those in quotes).
 * `zeros`: whole numbers may begin with zeros; where the type was inferred they may not, since 007 may be an id that
 * is not 7. Throws FieldProblem.
 */
export function readColumn(block: FieldBlock, column: number, type: TextType, zeros: boolean): Data {
  switch (type) {
    case 'int32':
      return readInt32(block, column, zeros);
    case 'int64':
      return readInt64(block, column, zeros);
    case 'float32':
      return readFloats(block, column, new Float32Array(block.rows), 'float32');
    case 'float64':
      return readFloats(block, column, new Float64Array(block.rows), 'float64');
    default:
      return readText(block, column);
  }
}

function readInt32(block: FieldBlock, column: number, zeros: boolean): Data {
  const { rows, columns, bytes, starts, ends } = block;
  const values = new Int32Array(rows);
  const nulls = new Nulls(rows);
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (start === end) {
      nulls.add(row);
      continue;
    }
    const value = parseShortInteger(bytes, start, end);
    if (value === undefined || value !== (value | 0)) throw wholeProblem(block, row, column, 'int32');
    if (!zeros && hasLeadingZero(bytes, start, end)) throw zerosProblem(row, column);
    values[row] = value;
  }
  return makeData({ type: arrowType('int32') as Int32, length: rows, data: values, ...nulls.parts });
}

function readInt64(block: FieldBlock, column: number, zeros: boolean): Data {
  const { rows, columns, bytes, starts, ends } = block;
  const values = new BigInt64Array(rows);
  const halves = new Int32Array(values.buffer);
  const nulls = new Nulls(rows);
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (start === end) {
      nulls.add(row);
      continue;
    }
    const value = parseShortInteger(bytes, start, end);
    if (value === undefined) {
      const long = parseLongInteger(latin1(bytes, start, end));
      if (long === undefined || BigInt.asIntN(64, long) !== long) throw wholeProblem(block, row, column, 'int64');
      values[row] = long;
    } else {
      halves[2 * row] = value;
      halves[2 * row + 1] = Math.floor(value / two32);
    }
    if (!zeros && hasLeadingZero(bytes, start, end)) throw zerosProblem(row, column);
  }
  return makeData({ type: arrowType('int64') as Int32, length: rows, data: values as unknown as Int32Array, ...nulls.parts });
}

function readFloats(block: FieldBlock, column: number, values: Float32Array | Float64Array, type: 'float32' | 'float64'): Data {
  const { rows, columns, bytes, starts, ends } = block;
  const nulls = new Nulls(rows);
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const start = starts[field];
    const end = ends[field];
    if (start === end) {
      nulls.add(row);
      continue;
    }
    const value = parseDecimal(bytes, start, end);
    if (value === undefined) throw new FieldProblem(NOT_A_NUMBER, row, column);
    values[row] = value;
  }
  return makeData({ type: arrowType(type) as Int32, length: rows, data: values as unknown as Int32Array, ...nulls.parts });
}

function readText(block: FieldBlock, column: number): Data {
  const { rows, columns, bytes, starts, ends, kinds } = block;
  let total = 0;
  for (let row = 0, field = column; row < rows; row++, field += columns) total += ends[field] - starts[field];
  const values = new Uint8Array(total);
  const offsets = new Int32Array(rows + 1);
  const nulls = new Nulls(rows);
  let at = 0;
  for (let row = 0, field = column; row < rows; row++, field += columns) {
    const end = ends[field];
    if (kinds[field] === ESCAPED) {
      for (let p = starts[field]; p < end; p++) {
        values[at++] = bytes[p];
        if (bytes[p] === QUOTE) p++;
      }
    } else {
      if (starts[field] === end && kinds[field] === BARE) nulls.add(row);
      for (let p = starts[field]; p < end; p++) values[at++] = bytes[p];
    }
    offsets[row + 1] = at;
  }
  return makeData({ type: arrowType('utf8') as Utf8, length: rows, valueOffsets: offsets, data: values.subarray(0, at), ...nulls.parts });
}

/** True for "007" and "-01", false for "0" and "+0". */
export function hasLeadingZero(bytes: Uint8Array, start: number, end: number): boolean {
  while (start < end && (bytes[start] < ZERO || bytes[start] > ZERO + 9)) start++;
  return bytes[start] === ZERO && start + 1 < end && bytes[start + 1] >= ZERO && bytes[start + 1] <= ZERO + 9;
}

function wholeProblem({ bytes, starts, ends, columns }: FieldBlock, row: number, column: number, type: TextType): FieldProblem {
  const field = row * columns + column;
  const isWhole = parseLongInteger(latin1(bytes, starts[field], ends[field])) !== undefined;
  return new FieldProblem(isWhole ? `is beyond ${type}` : NOT_WHOLE, row, column);
}

function zerosProblem(row: number, column: number): FieldProblem {
  return new FieldProblem('begins with a zero, which a whole number would lose', row, column);
}
