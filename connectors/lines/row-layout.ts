import { Field, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import { arrowType } from './arrow-type.ts';
import { hasNumbers, typeOfKinds } from './infer-types.ts';
import { unescaped } from './read-column.ts';
import type { ValueRules } from './column-reading.ts';
import { ESCAPED, ESCAPED_STRING, RecordProblem } from './field-block.ts';
import type { FieldBlock, ScanBounds } from './field-block.ts';
import type { RowWindow } from './row-window.ts';
import type { TextType } from './text-type.ts';

/** The marks between fields of rows that may be plain. */
export interface PlainMarks {
  /** A byte. */
  readonly delimiter: number;
  /** True when fields may stand in quotes. */
  readonly quotes: boolean;
}

/** Properties of values that text of any format can have. */
export interface ValueOptions {
  /** Types by column's name, for some or all columns. */
  readonly types?: Readonly<Record<string, TextType>>;
  /**
   * Texts that are nulls, in columns of every type. Default: NA, N/A, #N/A, NULL, Null, null, None and \N in
   * columns of numbers; an empty field is null too.
   */
  readonly nullValues?: readonly string[];
  /** True where a comma stands before decimals: 4,5. */
  readonly decimalComma?: boolean;
}

/** The properties of a file of rows, given and inferred. */
export interface RowLayout {
  /** True when the first row is skipped. */
  readonly header: boolean;
  readonly names: readonly string[];
  /** Kinds of values of each column in the first part of the file (see kindsIn). */
  readonly kinds: readonly number[];
  readonly types: readonly TextType[];
  /** True for columns whose types the user gave. */
  readonly given: readonly boolean[];
  /** The rules by which fields become values. */
  readonly rules: ValueRules;
  readonly schema: Schema;
  /** The scanner where all columns are wanted, or only some. */
  scanner(all: boolean): RowScan;
  /** Undefined where rows are never plain (see PlainRows). */
  readonly marks?: PlainMarks;
}

/** Finds whole rows in bytes, and their fields. */
export type RowScan = (block: FieldBlock, bytes: Uint8Array, from: number, bounds: ScanBounds) => number;

const MOST_FIELDS = 1 << 20;

/**
 * Most columns that are found without being named. Every row has a value or a null in each, so a file of lines
 * with new fields each would be the square of its size.
 */
export const MOST_COLUMNS = 4096;

/** Rows of a block: the wanted number, fewer for very wide and very small files. */
export function blockRows(window: RowWindow, columns: number, wanted: number): number {
  return Math.max(1, Math.min(wanted, Math.floor(MOST_FIELDS / columns), window.mostRows(columns)));
}

/**
 * Scans from a position of the window to the end of its range. Throws DataError with the line and its text.
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

/** Throws DataError with the line and its text for a RecordProblem. */
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
 * The layout with the given types, and elsewhere those of its kinds; with float64 where numbers are needed
 * and some are there, or nothing is.
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
    return needs?.numbers.includes(name) && (kinds[column] === 0 || hasNumbers(kinds[column]))
      ? 'float64'
      : typeOfKinds(kinds[column]);
  });
  const schema = new Schema(names.map((name, column) => new Field(name, arrowType(types[column]), true)));
  return { ...layout, types, given: names.map((name) => Object.hasOwn(given, name)), schema };
}

/**
 * The layouts with one type for columns of the same name in all files: the narrowest that holds the first
 * part of each.
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

/** Passes a byte order mark, which does not belong to the first name. */
export function skipMark(window: RowWindow): void {
  const { bytes, from, to } = window;
  if (to - from >= 3 && bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf)
    window.advance(from + 3, 0);
}

/** The first line that is not blank. Throws DataError when there is none. */
export function firstLine(window: RowWindow, file: string): string {
  const { bytes, to } = window;
  const start = startOfText(window);
  if (start >= to) throw new DataError('the file is empty, not even a header', { phase: 'read', file });
  const lf = bytes.indexOf(0x0a, start);
  return Buffer.from(bytes.buffer, start, (lf < 0 || lf > to ? to : lf) - start)
    .toString('utf8')
    .trimEnd();
}

export function startOfText({ bytes, from, to }: RowWindow): number {
  let start = from;
  while (start < to && (bytes[start] === 0x0a || bytes[start] === 0x0d)) start++;
  return start;
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
