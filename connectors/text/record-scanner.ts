import {
  BARE,
  countLines,
  ESCAPED,
  FieldBlock,
  LONGEST_ROW,
  QUOTED,
  RecordProblem,
  type ScanBounds,
} from '../lines/field-block.ts';
import type { TextDialect } from './dialect.ts';

const QUOTE = 0x22;
const CR = 0x0d;
const LF = 0x0a;

const AFTER_QUOTE = 'a closing quote is followed by something other than a delimiter or a line end';
const QUOTE_ADVICE = 'Correct the line, or set the option quotes if quotes are part of the texts';

/** Returned in place of the position after a row if more bytes are needed. */
const INCOMPLETE = -1;

/**
 * Finds the complete rows in `bytes[from..to)` until the block is full. Returns the position of the next row.
 * Blank lines are skipped, except in a file of one column, where they are empty fields; so are comments.
 * Throws RecordProblem for quotes that do not close and rows that are too long, and for misplaced quotes and
 * rows of another length unless the block collects faults.
 */
export function scanRecords(
  block: FieldBlock,
  bytes: Uint8Array,
  from: number,
  bounds: ScanBounds,
  dialect: TextDialect,
): number {
  const { to, atEnd } = bounds;
  block.begin(bytes);
  // A line end is put after the last byte, so that searches need no check for the end.
  bytes[to] = LF;
  const scan: RecordScan = { block, bytes, to, atEnd, dialect, quote: dialect.quotes ? QUOTE : -1 };
  const last = Math.min(to, bounds.limit);
  let p = from;
  while (block.rows < block.maximumRows && p < last) {
    const skipped = skippedAt(scan, p);
    if (skipped === INCOMPLETE || p + skipped > to) return atEnd ? to : p;
    if (skipped > 0) {
      p += skipped;
      block.lines++;
      continue;
    }
    block.linesBefore[block.rows] = block.lines;
    const lineEnd = scanRow(scan, p);
    if (lineEnd === INCOMPLETE) return p;
    p = lineEnd + 1;
    block.rows++;
  }
  return Math.min(p, to);
}

interface RecordScan {
  readonly block: FieldBlock;
  readonly bytes: Uint8Array;
  readonly to: number;
  readonly atEnd: boolean;
  readonly dialect: TextDialect;
  /** The byte that opens a quoted field; -1 where quotes are plain text. */
  readonly quote: number;
}

/** Length of the blank line or comment at a position, in bytes; 0 for a row; INCOMPLETE if its end is missing. */
function skippedAt({ block, bytes, to, atEnd, dialect: { comment } }: RecordScan, p: number): number {
  const blank = block.columns > 1 ? lineEndAt(bytes, p) : 0;
  if (blank > 0 || !comment || !isAt(bytes, p, comment)) return blank;
  const lf = bytes.indexOf(LF, p);
  if (lf - p > LONGEST_ROW) throw tooLong(p);
  return lf >= to && !atEnd ? INCOMPLETE : lf + 1 - p;
}

/** Length of the line end at a position, in bytes; 0 if there is none. */
function lineEndAt(bytes: Uint8Array, p: number): 0 | 1 | 2 {
  if (bytes[p] === LF) return 1;
  return bytes[p] === CR && bytes[p + 1] === LF ? 2 : 0;
}

/**
 * Scans the block's next row, which starts at `record`. Returns the position of its line end, or INCOMPLETE.
 */
function scanRow(scan: RecordScan, record: number): number {
  const { block, bytes, dialect, quote } = scan;
  const { columns, starts, ends, kinds } = block;
  const first = block.rows * columns;
  const delimiter = dialect.delimiter.charCodeAt(0);
  const width = dialect.delimiter.length;
  let column = 0;
  let isQuoted = false;
  let p = record;
  for (;;) {
    if (column === columns) return refuseLonger(scan, record, p);
    const field = first + column++;
    if (bytes[p] === quote) {
      isQuoted = true;
      const open = p;
      p = quotedEnd(scan, record, field, open);
      if (p === INCOMPLETE) return INCOMPLETE;
      if (p === MISPLACED) return refuseLine(scan, record, open, AFTER_QUOTE);
    } else {
      starts[field] = p;
      kinds[field] = BARE;
      for (;;) {
        const byte = bytes[p];
        if (byte === LF || (byte === delimiter && (width === 1 || isAt(bytes, p, dialect.delimiter)))) break;
        p++;
      }
      ends[field] = bytes[p] === LF ? beforeCr(bytes, starts[field], p) : p;
    }
    if (bytes[p] === LF) break;
    p += width;
  }
  return endRow(scan, record, { end: p, fields: column, isQuoted });
}

interface RowEnd {
  readonly end: number;
  readonly fields: number;
  /** True if a field is quoted. */
  readonly isQuoted: boolean;
}

/** Checks a row that ends at `end`. Returns the position of the line end before the next row, or INCOMPLETE. */
function endRow(scan: RecordScan, record: number, { end, fields, isQuoted }: RowEnd): number {
  const { block, bytes, to, atEnd, dialect } = scan;
  if (end >= to && !atEnd) return incomplete(scan, record);
  if (end - record > LONGEST_ROW) throw tooLong(record);
  if (fields < block.columns) return refuseRow(scan, record, end, fields);
  const lines = isQuoted ? countLines(bytes, record, end + 1) : 1;
  if (lines > 1 && dialect.doubtsQuotes && areRows(bytes.subarray(record, end), fields))
    return refuseRow(scan, record, end, fields);
  block.lines += lines;
  return end;
}

/** End of the last field of a line, without the CR of CR LF. */
function beforeCr(bytes: Uint8Array, start: number, end: number): number {
  return end > start && bytes[end - 1] === CR ? end - 1 : end;
}

/**
 * Refuses a row that ends at `end`. If one of its quotes spans lines, only the lines up to that quote are
 * refused: the quote may be part of a text, and the lines after it rows. Returns the position of the line end
 * before the next row.
 */
function refuseRow(scan: RecordScan, record: number, end: number, fields: number): number {
  const { block, bytes } = scan;
  const { columns, rows, starts, ends, kinds } = block;
  const summary = `the row has ${count(fields)}, need ${columns}`;
  for (let column = 0; column < Math.min(fields, columns); column++) {
    const field = rows * columns + column;
    const lf = kinds[field] === BARE ? -1 : bytes.indexOf(LF, starts[field]);
    if (lf < 0 || lf >= ends[field]) continue;
    const spans = `a quote in column ${column + 1} spans lines`;
    const message = fields === columns ? `${spans}, which are whole rows` : `${summary}, and ${spans}`;
    return refuseLine(scan, record, starts[field] - 1, message);
  }
  block.refuse(rows, summary, record);
  block.lines += countLines(bytes, record, end + 1);
  return end;
}

/** Refuses a row up to the end of the line in which a quote opens. Returns the position of that line end. */
function refuseLine({ block, bytes }: RecordScan, record: number, open: number, message: string): number {
  const lineEnd = bytes.indexOf(LF, open);
  block.refuse(block.rows, message, open, QUOTE_ADVICE);
  block.lines += countLines(bytes, record, lineEnd + 1);
  return lineEnd;
}

/**
 * Refuses a row that has more fields after the last column, from `p` on. Returns the position of its line
 * end.
 */
function refuseLonger(scan: RecordScan, record: number, p: number): number {
  const { bytes, to, atEnd, dialect } = scan;
  const lineEnd = bytes.indexOf(LF, p);
  if (lineEnd >= to && !atEnd) return incomplete(scan, record);
  if (lineEnd - record > LONGEST_ROW) throw tooLong(record);
  return refuseRow(scan, record, lineEnd, countFields(bytes, record, lineEnd, dialect));
}

/** End of a quoted field, from its opening quote; INCOMPLETE if more bytes are needed, or MISPLACED. */
function quotedEnd(scan: RecordScan, record: number, field: number, open: number): number {
  const { block, bytes, to, atEnd, dialect } = scan;
  const end = scanQuoted(block, field, open, Math.min(to, record + LONGEST_ROW + 1), dialect);
  if (end === UNCLOSED) {
    const column = field - block.rows * block.columns + 1;
    const message = `a quote opens in column ${column} and does not close`;
    if (to - record > LONGEST_ROW)
      throw new RecordProblem(`${message} within ${LONGEST_ROW} bytes`, open, QUOTE_ADVICE);
    if (atEnd) throw new RecordProblem(message, open, QUOTE_ADVICE);
    return INCOMPLETE;
  }
  if (end === MISPLACED) {
    const lineEnd = bytes.indexOf(LF, block.ends[field]);
    if ((lineEnd < 0 || lineEnd >= to) && !atEnd) return incomplete(scan, record);
    if (lineEnd - record > LONGEST_ROW) throw tooLong(record);
    return MISPLACED;
  }
  if (end - record > LONGEST_ROW) throw tooLong(record);
  return end;
}

/** Called if a row needs more bytes than are in memory. Throws RecordProblem if it is too long already. */
function incomplete({ to }: RecordScan, record: number): typeof INCOMPLETE {
  if (to - record > LONGEST_ROW) throw tooLong(record);
  return INCOMPLETE;
}

/** Results of scanQuoted: the field does not end; something follows the closing quote. */
const UNCLOSED = -2;
const MISPLACED = -3;

/**
 * Scans a field from its opening quote and sets its bounds. Returns its end, UNCLOSED if it does not end
 * before `to`, or MISPLACED.
 */
function scanQuoted(
  block: FieldBlock,
  field: number,
  open: number,
  to: number,
  { delimiter }: TextDialect,
): number {
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
    return MISPLACED;
  }
  return UNCLOSED;
}

function tooLong(position: number): RecordProblem {
  return new RecordProblem(`the row is longer than ${LONGEST_ROW} bytes`, position);
}

/** Number of fields in the row that starts at `record`, as far as the row is in memory. */
export function countFields(bytes: Uint8Array, record: number, to: number, dialect: TextDialect): number {
  const one = new FieldBlock(1, 1);
  one.bytes = bytes;
  bytes[to] = LF;
  let fields = 1;
  let fresh = true;
  for (let p = record; p < to && bytes[p] !== LF;) {
    if (fresh && dialect.quotes && bytes[p] === QUOTE) {
      p = scanQuoted(one, 0, p, to, dialect);
      if (p === MISPLACED) p = one.ends[0] + 1;
      if (p < 0) break;
    }
    fresh = isAt(bytes, p, dialect.delimiter);
    if (fresh) fields++;
    if (bytes[p] !== LF) p += fresh ? dialect.delimiter.length : 1;
  }
  return fields;
}

function isAt(bytes: Uint8Array, position: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[position + i] !== text.charCodeAt(i)) return false;
  return true;
}

function count(fields: number): string {
  return fields === 1 ? '1 field' : `${fields} fields`;
}

const TAB = 0x09;

/** Tab-separated fields that begin with a quote. */
interface TabQuotes {
  /** True if a field is properly quoted: closed before a tab or line end, and its lines are not whole rows. */
  readonly closes: boolean;
  /** Number of fields before that one. */
  readonly open: number;
  /** Position of the first of them. */
  readonly first: number;
}

/**
 * Finds fields that begin with a quote in `bytes[from..to)`, up to the first one that is a quoted field. The
 * first line has as many tabs as a row.
 */
export function findTabQuotes(bytes: Uint8Array, from: number, to: number): TabQuotes {
  const lineEnd = bytes.indexOf(LF, from);
  const columns = 1 + bytes.subarray(from, Math.min(lineEnd < 0 ? to : lineEnd, to)).filter(isTab).length;
  let [open, first] = [0, -1];
  for (let p = bytes.indexOf(QUOTE, from); p >= 0 && p < to; p = bytes.indexOf(QUOTE, p + 1)) {
    if (p > from && bytes[p - 1] !== TAB && bytes[p - 1] !== LF) continue;
    if (isQuotedField(bytes, p, to, columns)) return { closes: true, open, first };
    if (open++ === 0) first = p;
  }
  return { closes: false, open, first };
}

function isQuotedField(bytes: Uint8Array, open: number, to: number, columns: number): boolean {
  let close = bytes.indexOf(QUOTE, open + 1);
  while (close >= 0 && close < to && bytes[close + 1] === QUOTE) close = bytes.indexOf(QUOTE, close + 2);
  if (close < 0 || close >= to) return false;
  if (close + 1 < to && ![TAB, LF, CR].includes(bytes[close + 1])) return false;
  const start = bytes.lastIndexOf(LF, open) + 1;
  const lineEnd = bytes.indexOf(LF, close);
  return !areRows(bytes.subarray(start, Math.min(lineEnd < 0 ? to : lineEnd, to)), columns);
}

/**
 * True for two or more lines of which each has the tabs of a row: quotes that span them may be part of texts.
 */
export function areRows(lines: Uint8Array, columns: number): boolean {
  const tabs = [0];
  for (const byte of lines) {
    if (byte === LF) tabs.push(0);
    else if (byte === TAB) tabs[tabs.length - 1]++;
  }
  return columns > 1 && tabs.length > 1 && tabs.every((number) => number === columns - 1);
}

function isTab(byte: number): boolean {
  return byte === TAB;
}
