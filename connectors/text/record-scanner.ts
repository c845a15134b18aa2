import {
  BARE,
  countLines,
  ESCAPED,
  FieldBlock,
  LONGEST_ROW,
  QUOTED,
  RecordProblem,
} from '../lines/field-block.ts';
import type { ScanBounds } from '../lines/field-block.ts';
import type { TextDialect } from './dialect.ts';

const QUOTE = 0x22;
const CR = 0x0d;
const LF = 0x0a;

/**
 * Finds the whole rows in `bytes[from..to)` until the block is full, and returns the position of the next
 * one. Blank lines are skipped, except in a file of one column, where they are empty fields. Throws
 * RecordProblem for misplaced quotes and rows that are too long, and for rows of another length unless the
 * block takes their faults.
 *
 */
export function scanRecords(
  block: FieldBlock,
  bytes: Uint8Array,
  from: number,
  { to, limit, atEnd }: ScanBounds,
  dialect: TextDialect,
): number {
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
  const last = Math.min(to, limit);
  while (rows < maximumRows && p < last) {
    record = p;
    if (columns > 1 && (bytes[p] === LF || (bytes[p] === CR && bytes[p + 1] === LF))) {
      p += bytes[p] === LF ? 1 : 2;
      if (p > to) {
        // The line end may follow.
        if (!atEnd) p = record;
        break;
      }
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
        if (lf - record > LONGEST_ROW) throw tooLong(record);
        block.refuse(rows, tooMany(block, bytes, record, lf, dialect), record);
        field = (rows + 1) * columns;
        p = lf;
        break;
      }
      if (bytes[p] === quote) {
        isSimple = false;
        const open = p;
        p = scanQuoted(block, field, p, Math.min(to, record + LONGEST_ROW + 1), dialect);
        if (p === UNCLOSED)
          return incomplete(
            block,
            rows,
            record,
            to,
            atEnd,
            `a quote opens in column ${column + 1} and does not close`,
            open,
          );
        if (p === MISPLACED) {
          const lf = bytes.indexOf(LF, ends[field]);
          if ((lf < 0 || lf >= to) && !atEnd) return incomplete(block, rows, record, to, false, '', record);
          throw lf - record > LONGEST_ROW
            ? tooLong(record)
            : new RecordProblem(
                'something other than a delimiter or a line end follows a closing quote',
                open,
              );
        }
        if (p - record > LONGEST_ROW) throw tooLong(record);
      } else {
        starts[field] = p;
        kinds[field] = BARE;
        for (;;) {
          const byte = bytes[p];
          if (byte === LF || (byte === delimiter && (width === 1 || isAt(bytes, p, dialect.delimiter))))
            break;
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

/**
 * Results of scanQuoted for a field that does not end, and for one with something behind its closing quote.
 */
const UNCLOSED = -1;
const MISPLACED = -2;

/**
 * Scans a field from its opening quote: sets its bounds and returns its end, UNCLOSED when it does not end
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

/**
 * Keeps the whole rows so far; the rest waits for more bytes. Throws RecordProblem when none can come or the
 * row is too long.
 */
function incomplete(
  block: FieldBlock,
  rows: number,
  record: number,
  to: number,
  atEnd: boolean,
  message: string,
  position: number,
): number {
  if (to - record > LONGEST_ROW)
    throw message === ''
      ? tooLong(record)
      : new RecordProblem(`${message} within ${LONGEST_ROW} bytes`, position);
  if (atEnd) throw new RecordProblem(message, position);
  block.rows = rows;
  return record;
}

function tooLong(position: number): RecordProblem {
  return new RecordProblem(`the row is longer than ${LONGEST_ROW} bytes`, position);
}

function tooMany(
  block: FieldBlock,
  bytes: Uint8Array,
  record: number,
  end: number,
  dialect: TextDialect,
): string {
  return `the row has ${count(countFields(bytes, record, end, dialect))}, need ${block.columns}`;
}

/** The number of fields in the row that begins at `record`, as far as it is in memory. */
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
