const LF = 0x0a;

/** Most bytes of a row: a quote that never closes must not read a whole file into memory. */
export const LONGEST_ROW = 1 << 20;

/** Kinds of fields: bare, in quotes, in quotes with "" inside. */
export const BARE = 0;
export const QUOTED = 1;
export const ESCAPED = 2;
/**
 * Kinds of JSON's fields beside bare numbers: a string, one with escapes, an object or array, true or false.
 */
export const STRING = 3;
export const ESCAPED_STRING = 4;
export const NESTED = 5;
export const LITERAL = 6;

/** A fault in a row at a position of the bytes; the error for the user names the line instead. */
export class RecordProblem extends Error {
  readonly position: number;
  readonly advice: string;
  constructor(
    message: string,
    position: number,
    advice = 'Correct the line, or set the delimiter if it was inferred wrongly',
  ) {
    super(message);
    this.position = position;
    this.advice = advice;
  }
}

/**
 * The places of the fields of some rows: field c of row r is `bytes[starts[i]] .. bytes[ends[i]]`, i = r *
 * columns + c, quotes left out. One block is filled repeatedly; fields are not made into strings.
 */
export class FieldBlock {
  rows = 0;
  /** Lines of the rows, with blank ones between them. */
  lines = 0;
  /**
   * The reasons of rows that could not be taken apart; their fields are empty. Undefined where such rows are
   * errors.
   */
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

  /**
   * Makes all fields of a row empty, and notes the reason. Throws RecordProblem where such rows are errors.
   */
  refuse(row: number, message: string, position: number): void {
    if (this.faults === undefined) throw new RecordProblem(message, position);
    this.faults.set(row, message);
    const first = row * this.columns;
    this.starts.fill(position, first, first + this.columns);
    this.ends.fill(position, first, first + this.columns);
    this.kinds.fill(BARE, first, first + this.columns);
  }
}

/** The bytes to scan: those before `to`, with room for one more there. */
export interface ScanBounds {
  readonly to: number;
  /** Rows that begin at or behind it are left. */
  readonly limit: number;
  /** True where the file ends at `to`, so that the last row may lack its line end. */
  readonly atEnd: boolean;
}

export function countLines(bytes: Uint8Array, from: number, to: number): number {
  let lines = 0;
  for (let p = from; p < to; p++) if (bytes[p] === LF) lines++;
  return lines;
}
