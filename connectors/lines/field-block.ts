const LF = 0x0a;

/** A longer row is an error, so that a quote that is never closed does not read a whole file into memory. */
export const LONGEST_ROW = 1 << 20;

/** Kinds of fields: bare, quoted, quoted with "" inside. */
export const BARE = 0;
export const QUOTED = 1;
export const ESCAPED = 2;
/** Further kinds of fields in JSON: a string, a string with escapes, an object or array, true or false. */
export const STRING = 3;
export const ESCAPED_STRING = 4;
export const NESTED = 5;
export const LITERAL = 6;

/** A fault in a row, at a byte position. It is converted to the user's error, which names the line. */
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
 * Positions of the fields of some rows: field c of row r is `bytes[starts[i]] .. bytes[ends[i]]`, i = r *
 * columns + c, without quotes. One block is reused for all rows, and fields do not become strings.
 */
export class FieldBlock {
  rows = 0;
  /** Number of lines of the rows, including blank lines between them. */
  lines = 0;
  /**
   * The fault of each row that could not be split into fields; the fields of such a row are empty. Undefined
   * if such rows are errors.
   */
  faults: Map<number, string> | undefined;
  bytes: Uint8Array;
  readonly columns: number;
  readonly maximumRows: number;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly kinds: Uint8Array;
  /** Number of the block's lines before each row. */
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

  /** Empties the block, to be filled from these bytes. */
  begin(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.rows = 0;
    this.lines = 0;
    this.faults?.clear();
  }

  /** Makes all fields of a row empty, and records the fault. Throws RecordProblem if such rows are errors. */
  refuse(row: number, message: string, position: number, advice?: string): void {
    if (this.faults === undefined) throw new RecordProblem(message, position, advice);
    this.faults.set(row, message);
    const first = row * this.columns;
    this.starts.fill(position, first, first + this.columns);
    this.ends.fill(position, first, first + this.columns);
    this.kinds.fill(BARE, first, first + this.columns);
  }
}

/** The bytes to scan: they end at `to`, and the byte at `to` may be overwritten. */
export interface ScanBounds {
  readonly to: number;
  /** Rows that start here or later belong to another range. */
  readonly limit: number;
  /** True if the file ends at `to`, so that its last row may have no line end. */
  readonly atEnd: boolean;
}

export function countLines(bytes: Uint8Array, from: number, to: number): number {
  let lines = 0;
  for (let p = from; p < to; p++) if (bytes[p] === LF) lines++;
  return lines;
}
