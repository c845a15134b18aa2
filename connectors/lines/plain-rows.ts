import { makeData } from 'apache-arrow';
import type { Data, Int32, Utf8 } from 'apache-arrow';
import { arrowType } from './arrow-type.ts';
import { LONGEST_ROW } from './field-block.ts';
import type { ScanBounds } from './field-block.ts';
import { COMMA, DOT, powersOfTen } from './parse-numbers.ts';
import type { RowLayout } from './row-layout.ts';
import type { TextType } from './text-type.ts';

const [LF, CR, QUOTE, MINUS, ZERO] = [0x0a, 0x0d, 0x22, 0x2d, 0x30];
const two32 = 2 ** 32;

/** Readings of a field: passed over, a whole number in 32 bits or as a double, a decimal, text. */
const [SKIP, INT32, WHOLE, DECIMAL, TEXT] = [0, 1, 2, 3, 4];
const readings: Readonly<Partial<Record<TextType, number>>> = { int32: INT32, int64: WHOLE, float32: DECIMAL, float64: DECIMAL, utf8: TEXT };

/** Fewer rows than that are not worth a batch. */
export const FEW_ROWS = 1024;

/**
 * Reads rows as numbers and texts in one pass over their bytes, as long as they are plain: every field is there, none in quotes, numbers have
 * digits, a minus and a point alone, and at most 15 digits. It stops before another row, which the scanner of all rows takes apart.
 * Nearly all files of ratings have only such rows, and it takes half the time.
 */
export class PlainRows {
  rows = 0;
  readonly #types: readonly TextType[];
  readonly #wanted: readonly number[];
  readonly #maximumRows: number;
  /** By column of the file. */
  readonly #readings: Uint8Array;
  readonly #zeros: Uint8Array;
  readonly #delimiter: number;
  readonly #quotes: boolean;
  readonly #point: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #whole: Int32Array[] = [];
  /** Numbers, or the beginnings of texts. */
  #numbers: Float64Array[] = [];
  #ends: Int32Array[] = [];
  /** True when the next rows need arrays of their own. */
  #given = true;

  private constructor({ types, given, rules }: RowLayout, marks: PlainMarks, wanted: readonly number[], maximumRows: number) {
    this.#types = types;
    this.#wanted = wanted;
    this.#maximumRows = maximumRows;
    this.#readings = Uint8Array.from(types, (type, column) => (wanted.includes(column) ? (readings[type] ?? SKIP) : SKIP));
    this.#zeros = Uint8Array.from(given, Number);
    this.#delimiter = marks.delimiter;
    this.#quotes = marks.quotes;
    this.#point = rules.decimalComma ? COMMA : DOT;
  }

  /** Undefined where rows of the layout cannot be read so. */
  static of(layout: RowLayout, wanted: readonly number[], maximumRows: number): PlainRows | undefined {
    const { marks, rules, types } = layout;
    if (marks === undefined || rules.nulls !== undefined || types.length < 2 || wanted.some((column) => readings[types[column]] === undefined)) return undefined;
    return new PlainRows(layout, marks, wanted, maximumRows);
  }

  /** Reads rows until the first that is not plain, and returns its position. */
  scan(bytes: Uint8Array, from: number, { to, limit }: ScanBounds): number {
    const [columns, maximumRows] = [this.#types.length, this.#maximumRows];
    const [kinds, zeros, delimiter, quotes, point] = [this.#readings, this.#zeros, this.#delimiter, this.#quotes, this.#point];
    this.#begin(bytes);
    const [whole, numbers, ends] = [this.#whole, this.#numbers, this.#ends];
    const last = Math.min(to, limit);
    // A line end behind the last byte stops every search.
    bytes[to] = LF;
    let row = 0;
    let record = from;
    rows: for (; row < maximumRows && record < last; row++) {
      let p = record;
      for (let column = 0; column < columns; column++) {
        const kind = kinds[column];
        if (kind === INT32 || kind === WHOLE) {
          const negative = bytes[p] === MINUS;
          if (negative) p++;
          const start = p;
          let value = 0;
          let digit = bytes[p] - ZERO;
          while (digit >= 0 && digit <= 9 && p < start + 9) {
            value = value * 10 + digit;
            digit = bytes[++p] - ZERO;
          }
          if (p === start || (bytes[start] === ZERO && p > start + 1 && zeros[column] === 0)) break rows;
          if (digit >= 0 && digit <= 9) {
            let long = value;
            while (digit >= 0 && digit <= 9) {
              long = long * 10 + digit;
              digit = bytes[++p] - ZERO;
            }
            if (p > start + 15 || (kind === INT32 && (negative ? long > 2 ** 31 : long >= 2 ** 31))) break rows;
            if (kind === INT32) whole[column][row] = negative ? -long : long;
            else numbers[column][row] = negative ? -long : long;
          } else if (kind === INT32) whole[column][row] = negative ? -value : value;
          else numbers[column][row] = negative ? -value : value;
        } else if (kind === DECIMAL) {
          const negative = bytes[p] === MINUS;
          if (negative) p++;
          const start = p;
          let mantissa = 0;
          let digit = bytes[p] - ZERO;
          while (digit >= 0 && digit <= 9) {
            mantissa = mantissa * 10 + digit;
            digit = bytes[++p] - ZERO;
          }
          let digits = p - start;
          if (bytes[p] === point && point !== delimiter) {
            const decimals = ++p;
            digit = bytes[p] - ZERO;
            while (digit >= 0 && digit <= 9) {
              mantissa = mantissa * 10 + digit;
              digit = bytes[++p] - ZERO;
            }
            digits += p - decimals;
            if (digits > 15) break rows;
            mantissa /= powersOfTen[p - decimals];
          }
          if (digits === 0 || digits > 15) break rows;
          numbers[column][row] = negative ? -mantissa : mantissa;
        } else {
          const start = p;
          if (quotes && bytes[p] === QUOTE) break rows;
          while (bytes[p] !== delimiter && bytes[p] !== LF) p++;
          if (kind === TEXT) {
            const end = bytes[p] === LF && p > start && bytes[p - 1] === CR ? p - 1 : p;
            if (end === start) break rows;
            numbers[column][row] = start;
            ends[column][row] = end;
          }
        }
        if (column < columns - 1) {
          if (bytes[p] !== delimiter) break rows;
        } else if (bytes[p] === CR && bytes[p + 1] === LF && kind !== TEXT) p++;
        else if (bytes[p] !== LF) break rows;
        p++;
      }
      if (p > to || p - record > LONGEST_ROW) break;
      record = p;
    }
    this.rows = row;
    return record;
  }

  /** The columns that are wanted, as Arrow data: of their own, or `borrowed` until the next rows are read. */
  columns(borrowed: boolean): Data[] {
    const length = this.rows;
    this.#given = !borrowed;
    return this.#wanted.map((column) => {
      const type = this.#types[column];
      if (type === 'utf8') return this.#text(column);
      if (type === 'int32') return makeData({ type: arrowType('int32') as Int32, length, nullCount: 0, data: this.#whole[column].subarray(0, length) });
      const values = this.#numbers[column].subarray(0, length);
      return makeData({ type: arrowType(type) as Int32, length, nullCount: 0, data: (type === 'float64' ? values : type === 'float32' ? Float32Array.from(values) : wide(values)) as never });
    });
  }

  #begin(bytes: Uint8Array): void {
    this.#bytes = bytes;
    if (!this.#given) return;
    this.#given = false;
    const size = (reading: number, ...of: readonly number[]) => (of.includes(reading) ? this.#maximumRows : 0);
    this.#whole = Array.from(this.#readings, (reading) => new Int32Array(size(reading, INT32)));
    this.#numbers = Array.from(this.#readings, (reading) => new Float64Array(size(reading, WHOLE, DECIMAL, TEXT)));
    this.#ends = Array.from(this.#readings, (reading) => new Int32Array(size(reading, TEXT)));
  }

  #text(column: number): Data {
    const [length, bytes, starts, ends] = [this.rows, this.#bytes, this.#numbers[column], this.#ends[column]];
    const offsets = new Int32Array(length + 1);
    for (let row = 0; row < length; row++) offsets[row + 1] = offsets[row] + ends[row] - starts[row];
    const values = new Uint8Array(offsets[length]);
    for (let row = 0, at = 0; row < length; row++) for (let p = starts[row]; p < ends[row]; p++) values[at++] = bytes[p];
    return makeData({ type: arrowType('utf8') as Utf8, length, nullCount: 0, valueOffsets: offsets, data: values });
  }
}

/** The marks between fields of rows that may be plain. */
export interface PlainMarks {
  /** A byte. */
  readonly delimiter: number;
  /** True when fields may stand in quotes. */
  readonly quotes: boolean;
}

/** Whole numbers of at most 53 bits in 64. */
function wide(values: Float64Array): BigInt64Array {
  const halves = new Int32Array(2 * values.length);
  for (let row = 0; row < values.length; row++) {
    halves[2 * row] = values[row];
    halves[2 * row + 1] = Math.floor(values[row] / two32);
  }
  return new BigInt64Array(halves.buffer);
}
