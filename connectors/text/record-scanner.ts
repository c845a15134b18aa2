import { LONGEST_ROW } from './dialect.ts';
import type { TextDialect } from './dialect.ts';

const QUOTE = 0x22;
const CR = 0x0d;
const LF = 0x0a;

/** Kinds of fields: bare, in quotes, in quotes with "" inside. */
export const BARE = 0;
export const QUOTED = 1;
export const ESCAPED = 2;
/** Kinds of JSON's fields beside bare numbers: a string, one with escapes, an object or array, true or false. */
export const STRING = 3;
export const ESCAPED_STRING = 4;
export const NESTED = 5;
export const LITERAL = 6;

/** A fault in a row at a position of the bytes; the error for the user names the line instead. */
export class RecordProblem extends Error {
  readonly position: number;
  readonly advice: string;
  constructor(message: string, position: number, advice = 'Correct the line, or set the delimiter if it was inferred wrongly') {
    super(message);
    this.position = position;
    this.advice = advice;
  }
}

/**
 * The places of the fields of some rows: field c of row r is `bytes[starts[i]] .. bytes[ends[i]]`, i = r * columns + c, quotes
 * left out. One block is filled repeatedly; fields are not made into strings.
 */
export class FieldBlock {
  rows = 0;
  /** Lines of the rows, with blank ones between them. */
  lines = 0;
  /** The reasons of rows that could not be taken apart; their fields are empty. Undefined where such rows are errors. */
  faults: Map<number, string> | undefined;
  bytes: Uint8Array;
  readonly columns: number;
  readonly maximumRows: number;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly kinds: Uint8Array;
  /** Lines of the block before each row. */
  readonly linesBefore: Int32Array;

  constructor(columns: number, rows: number) {
    const fields = columns * rows;
    this.bytes = new Uint8Array(0);
    this.columns = columns;
    this.maximumRows = rows;
    this.starts = new Int32Array(fields);
    this.ends = new Int32Array(fields);
    this.kinds = new Uint8Array(fields);
    this.linesBefore = new Int32Array(rows);
  }

  /** Begins to fill the block anew from these bytes. */
  begin(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.rows = 0;
    this.lines = 0;
    this.faults?.clear();
  }

  /** Makes all fields of a row empty, and notes the reason. Throws RecordProblem where such rows are errors. */
  refuse(row: number, message: string, position: number): void {
    if (this.faults === undefined) throw new RecordProblem(message, position);
    this.faults.set(row, message);
    const first = row * this.columns;
    this.starts.fill(position, first, first + this.columns);
    this.ends.fill(position, first, first + this.columns);
    this.kinds.fill(BARE, first, first + this.columns);
  }
}

/**
 * Finds the whole rows in `bytes[from..to)` until the block is full, and returns the position of the next one. `bytes` must
 * have room for one more byte at `to`. `atEnd`: the file ends at `to`, so the last row may lack its line end.
 * Blank lines are skipped, except in a file of one column, where they are empty fields.
 * Throws RecordProblem for misplaced quotes and rows that are too long, and for rows of another length unless the block takes their faults.
 */
export function scanRecords(block: FieldBlock, bytes: Uint8Array, from: number, to: number, atEnd: boolean, dialect: TextDialect): number {
  const { columns, maximumRows, starts, ends, kinds } = block;
  const delimiter = dialect.delimiter.charCodeAt(0);
  const width = dialect.delimiter.length;
  const quote = dialect.quotes ? QUOTE : -1;
  block.begin(bytes);
  // A line end behind the last byte stops every search.
  bytes[to] = LF;
  let rows = 0;
  let field = 0;
  let p = from;
  let record = from;
  while (rows < maximumRows && p < to) {
    record = p;
    if (columns > 1 && (bytes[p] === LF || (bytes[p] === CR && bytes[p + 1] === LF))) {
      p += bytes[p] === LF ? 1 : 2;
      if (p > to) break;
      block.lines++;
      continue;
    }
    block.linesBefore[rows] = block.lines;
    let column = 0;
    let isSimple = true;
    for (;;) {
      if (column === columns) {
        const lf = bytes.indexOf(LF, p);
        if (lf >= to && !atEnd) return incomplete(block, rows, record, to, false, '', record);
        block.refuse(rows, tooMany(block, bytes, record, to, dialect), record);
        field = (rows + 1) * columns;
        p = lf;
        break;
      }
      if (bytes[p] === quote) {
        isSimple = false;
        p = scanQuoted(block, field, p, to, dialect);
        if (p < 0) return incomplete(block, rows, record, to, atEnd, `a quote opens in column ${column + 1} and does not close`, starts[field] - 1);
      } else {
        starts[field] = p;
        kinds[field] = BARE;
        for (;;) {
          const byte = bytes[p];
          if (byte === LF || (byte === delimiter && (width === 1 || isAt(bytes, p, dialect.delimiter)))) break;
          p++;
        }
        ends[field] = p > starts[field] && bytes[p] === LF && bytes[p - 1] === CR ? p - 1 : p;
      }
      field++;
      column++;
      if (bytes[p] === LF) break;
      p += width;
    }
    if (p >= to && !atEnd) return incomplete(block, rows, record, to, false, '', record);
    if (p - record > LONGEST_ROW) throw tooLong(record);
    if (column < columns) {
      block.refuse(rows, `the row has ${count(column)}, need ${columns}`, record);
      field = (rows + 1) * columns;
    }
    p++;
    rows++;
    block.lines += isSimple ? 1 : countLines(bytes, record, p);
  }
  block.rows = rows;
  return Math.min(p, to);
}

/** Scans a field from its opening quote: sets its bounds and returns its end, or -1 when it does not end before `to`. */
function scanQuoted(block: FieldBlock, field: number, open: number, to: number, { delimiter }: TextDialect): number {
  const { bytes, starts, ends, kinds } = block;
  starts[field] = open + 1;
  kinds[field] = QUOTED;
  let p = bytes.indexOf(QUOTE, open + 1);
  while (p >= 0 && p < to) {
    if (p + 1 < to && bytes[p + 1] === QUOTE) {
      kinds[field] = ESCAPED;
      p = bytes.indexOf(QUOTE, p + 2);
      continue;
    }
    ends[field] = p;
    p++;
    if (bytes[p] === CR && (bytes[p + 1] === LF || p + 1 >= to)) p++;
    if (p >= to) return to;
    if (bytes[p] === LF || isAt(bytes, p, delimiter)) return p;
    throw new RecordProblem('something other than a delimiter or a line end follows a closing quote', open);
  }
  return -1;
}

/** Keeps the whole rows so far; the rest waits for more bytes. Throws RecordProblem when none can come or the row is too long. */
function incomplete(block: FieldBlock, rows: number, record: number, to: number, atEnd: boolean, message: string, position: number): number {
  if (to - record > LONGEST_ROW) throw message === '' ? tooLong(record) : new RecordProblem(`${message} within ${LONGEST_ROW} bytes`, position);
  if (atEnd) throw new RecordProblem(message, position);
  block.rows = rows;
  return record;
}

function tooLong(position: number): RecordProblem {
  return new RecordProblem(`the row is longer than ${LONGEST_ROW} bytes`, position);
}

function tooMany(block: FieldBlock, bytes: Uint8Array, record: number, to: number, dialect: TextDialect): string {
  return `the row has ${count(countFields(bytes, record, to, dialect))}, need ${block.columns}`;
}

/** The number of fields in the row that begins at `record`, as far as it is in memory. */
export function countFields(bytes: Uint8Array, record: number, to: number, dialect: TextDialect): number {
  const one = new FieldBlock(1, 1);
  one.bytes = bytes;
  bytes[to] = LF;
  let fields = 1;
  let fresh = true;
  for (let p = record; p < to && bytes[p] !== LF; ) {
    if (fresh && dialect.quotes && bytes[p] === QUOTE) {
      p = scanQuoted(one, 0, p, to, dialect);
      if (p < 0) break;
    }
    fresh = isAt(bytes, p, dialect.delimiter);
    if (fresh) fields++;
    if (bytes[p] !== LF) p += fresh ? dialect.delimiter.length : 1;
  }
  return fields;
}

export function countLines(bytes: Uint8Array, from: number, to: number): number {
  let lines = 0;
  for (let p = from; p < to; p++) if (bytes[p] === LF) lines++;
  return lines;
}

function isAt(bytes: Uint8Array, position: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[position + i] !== text.charCodeAt(i)) return false;
  return true;
}

function count(fields: number): string {
  return fields === 1 ? '1 field' : `${fields} fields`;
}
