import { Field, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import type { Message } from '../../engine/events.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { TextType } from '../files/format-names.ts';
import { ESCAPED, ESCAPED_STRING, FieldBlock, RecordProblem, type ScanBounds } from './field-block.ts';
import { hasNumbers, hasTimes, typeOfKinds } from './infer-types.ts';
import { arrowType, unescaped, type ValueRules } from './read-column.ts';
import type { RowWindow } from './row-window.ts';

/** The marks of a format whose rows PlainRows may read: delimiter and quotes. */
export interface PlainMarks {
  /** As a byte. */
  readonly delimiter: number;
  /** True if fields may be quoted. */
  readonly quotes: boolean;
}

/** Options for values, the same in every text format. */
export interface ValueOptions {
  /** Types by column name, for some or all columns: `{ at: 'utf8' }` keeps times as the file has them. */
  readonly types?: Readonly<Record<string, TextType>>;
  /**
   * Texts that mean null in columns of every type. Default: NA, N/A, #N/A, NULL, Null, null, None and \N in
   * columns of numbers and times. An empty field is always null.
   */
  readonly nullValues?: readonly string[];
  /** True if the decimal separator is a comma: 4,5. */
  readonly decimalComma?: boolean;
}

/** Properties of a file of rows, given and inferred. */
export interface RowLayout {
  /** True when the first row is skipped. */
  readonly header: boolean;
  readonly names: readonly string[];
  /** Kinds of values of each column in the first window of the file (see kindsIn). */
  readonly kinds: readonly number[];
  readonly types: readonly TextType[];
  /** True for columns whose types the user gave. */
  readonly given: readonly boolean[];
  /** The rules by which fields become values. */
  readonly rules: ValueRules;
  readonly schema: Schema;
  /** Lines before the first row or header that are skipped, and their end in the file. */
  readonly head?: { readonly lines: number; readonly end: number } | undefined;
  /** Notes for the user about properties that were inferred from the file and may be wrong. */
  readonly notes?: readonly Message[];
  /** The scanner for all columns, or for only some. */
  scanner(all: boolean): RowScan;
  /** Undefined if rows are never plain (see PlainRows). */
  readonly marks?: PlainMarks;
}

/** Finds complete rows in bytes, and their fields. */
export type RowScan = (block: FieldBlock, bytes: Uint8Array, from: number, bounds: ScanBounds) => number;

const MOST_FIELDS = 1 << 20;

/**
 * Most columns of a file whose columns the user does not name. Each row takes memory for every column, so
 * memory would grow quadratically with a file whose lines all have new fields.
 */
export const MOST_COLUMNS = 4096;

/** Number of rows for a block: `wanted`, but fewer if rows are very wide or the file is very small. */
export function blockRows(window: RowWindow, columns: number, wanted: number): number {
  return Math.max(1, Math.min(wanted, Math.floor(MOST_FIELDS / columns), window.mostRows(columns)));
}

/**
 * Scans from a position of the window to the end of the range. Throws DataError with the line and its text.
 */
export function scanWindow(
  window: RowWindow,
  block: FieldBlock,
  from: number,
  scan: RowScan,
  limit = window.limit,
): number {
  return withLine(window, () =>
    scan(block, window.bytes, from, { to: window.to, limit, atEnd: window.atEnd }),
  );
}

/** Most rows of a block that is inspected, so that it stays in the processor's cache. */
const INSPECTED = 4096;

/**
 * All rows of the window from `from` on, for inferring types: one block, filled again and again. Rows that
 * cannot be split into fields are empty; they are reported when the rows are read.
 */
export function* inspectedRows(
  window: RowWindow,
  columns: number,
  batchSize: number,
  from: number,
  scan: RowScan,
): Generator<FieldBlock> {
  const block = new FieldBlock(columns, blockRows(window, columns, Math.min(batchSize, INSPECTED)));
  block.faults = new Map();
  for (let next = from; next < window.to;) {
    next = scanWindow(window, block, next, scan);
    if (block.rows === 0) return;
    yield block;
  }
}

/** Turns a RecordProblem into a DataError with the line and its text. */
export function withLine<Result>(window: RowWindow, scan: () => Result): Result {
  try {
    return scan();
  } catch (error) {
    if (error instanceof RecordProblem) throw window.problem(error.message, error.position, error.advice);
    throw error;
  }
}

export function rulesOf({ nullValues, decimalComma = false }: ValueOptions): ValueRules {
  return { decimalComma, nulls: nullValues === undefined ? undefined : new Set(nullValues) };
}

/**
 * The layout with the given types, else with the types inferred from its kinds. A column in which numbers are
 * needed is float64 if it has numbers or only nulls; times in a column of ids are texts.
 */
export function withTypes<L extends Omit<RowLayout, 'types' | 'given' | 'schema'>>(
  layout: L,
  given: NonNullable<ValueOptions['types']>,
  file: string,
  needs?: ValueNeeds,
): L & Pick<RowLayout, 'types' | 'given' | 'schema'> {
  const { names, kinds } = layout;
  const known = new Set(names);
  const unknown = Object.keys(given).find((name) => !known.has(name));
  if (unknown !== undefined) {
    throw new DataError('a type is given for a column that is not there', {
      phase: 'read',
      file,
      column: unknown,
      advice: spelled(nearest(unknown, names), `The columns are: ${names.join(', ')}`),
    });
  }
  const types = names.map((name, column) => {
    if (Object.hasOwn(given, name)) return given[name];
    if (needs?.texts?.includes(name) && hasTimes(kinds[column])) return 'utf8';
    return needs?.numbers.includes(name) && (kinds[column] === 0 || hasNumbers(kinds[column]))
      ? 'float64'
      : typeOfKinds(kinds[column]);
  });
  const schema = new Schema(names.map((name, column) => new Field(name, arrowType(types[column]), true)));
  return { ...layout, types, given: names.map((name) => Object.hasOwn(given, name)), schema };
}

/**
 * Gives columns of the same name one type in all files: the narrowest that holds the values in the first
 * window of each.
 */
export function withCommonTypes<L extends RowLayout>(
  layouts: readonly L[],
  { types = {} }: ValueOptions,
  needs?: ValueNeeds,
): L[] {
  const seen = new Map<string, number>();
  for (const { names, kinds } of layouts)
    names.forEach((name, column) => seen.set(name, (seen.get(name) ?? 0) | kinds[column]));
  return layouts.map((layout, index) =>
    withTypes(
      { ...layout, kinds: layout.names.map((name) => seen.get(name) as number) },
      types,
      `file ${index + 1}`,
      needs,
    ),
  );
}

/** Skips a byte order mark, which is not part of the first name. */
export function skipMark(window: RowWindow): void {
  const { bytes, from, to } = window;
  if (to - from >= 3 && bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf)
    window.advance(from + 3, 0);
}

/** The lines from a position on that are not blank, each with the position after it. */
export function* linesFrom(
  window: RowWindow,
  from: number,
): Generator<{ readonly text: string; readonly start: number; readonly end: number }> {
  const { bytes, to } = window;
  for (let start = from, end = to; start < to; start = end) {
    const lf = bytes.indexOf(0x0a, start);
    const last = lf < 0 || lf > to ? to : lf;
    end = Math.min(last + 1, to);
    const text = Buffer.from(bytes.buffer, start, last - start)
      .toString('utf8')
      .replace(/\r$/, '');
    if (text !== '') yield { text, start, end };
  }
}

/** The text of a field, for names and messages. */
export function fieldText(
  { bytes, starts, ends, kinds, columns }: FieldBlock,
  row: number,
  column: number,
): string {
  const field = row * columns + column;
  if (kinds[field] === ESCAPED_STRING)
    return Buffer.from(unescaped(bytes, starts[field], ends[field])).toString('utf8');
  const text = Buffer.from(bytes.buffer, starts[field], ends[field] - starts[field]).toString('utf8');
  return kinds[field] === ESCAPED ? text.replaceAll('""', '"') : text;
}
