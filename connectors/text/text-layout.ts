import { Field, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { arrowType } from './arrow-type.ts';
import { checkDelimiter, defaultQuotes, guessDelimiter } from './dialect.ts';
import type { TextDialect } from './dialect.ts';
import { isNumeric, kindsIn, typeOfKinds } from './infer-types.ts';
import { countFields, ESCAPED, FieldBlock, RecordProblem, scanRecords } from './record-scanner.ts';
import type { RowWindow } from './row-window.ts';
import type { TextType } from './text-type.ts';

/** What the user says of a text file; the rest is found out from its first 4 MiB. */
export interface TextOptions {
  /** Between fields: one or more ASCII characters. */
  readonly delimiter?: string;
  /** Whether the first row names the columns. */
  readonly header?: boolean;
  /** Whether fields may stand in double quotes; true unless the delimiter is "::". */
  readonly quotes?: boolean;
  /** Names of the columns, for files without a header (or instead of it). */
  readonly columns?: readonly string[];
  /** Types by column's name, for some or all columns. */
  readonly types?: Readonly<Record<string, TextType>>;
}

/** How a text file is read: what was given and what was found out. */
export interface TextLayout {
  readonly dialect: TextDialect;
  /** Skip the first row. */
  readonly header: boolean;
  readonly names: readonly string[];
  /** What kinds of values each column has in the first part of the file (see kindsIn). */
  readonly kinds: readonly number[];
  readonly types: readonly TextType[];
  /** Whose types the user named. */
  readonly given: readonly boolean[];
  readonly schema: Schema;
}

const positional = ['user', 'item', 'rating', 'timestamp'];
const usualNames = /^(user|item|movie|product|artist|book|track|title|name|rating|score|timestamp|date|time|id|.*[ _]?id)s?$/i;
const mostFields = 1 << 20;

/** Rows of a block: what is wanted, fewer for very wide files and very small ones. */
export function blockRows(window: RowWindow, columns: number, wanted: number): number {
  return Math.max(1, Math.min(wanted, Math.floor(mostFields / columns), window.mostRows(columns)));
}

/** Finds out how the file in the window is to be read. The window must just have been filled; it stays where it is. */
export function inferLayout(window: RowWindow, file: string, options: TextOptions, batchSize: number): TextLayout {
  skipMark(window);
  const delimiter = options.delimiter ?? guessDelimiter(firstLine(window, file), file);
  checkDelimiter(delimiter);
  const dialect = { delimiter, quotes: options.quotes ?? defaultQuotes(delimiter) };
  const columns = countFields(window.bytes, startOfText(window), window.to, dialect);
  const block = new FieldBlock(columns, blockRows(window, columns, batchSize));
  const all = Array.from({ length: columns }, (_, column) => column);
  let next = scanWindow(window, block, window.from, dialect);
  if (block.rows === 0) throw new DataError('the file has no rows, not even a header', { phase: 'read', file });
  const first = all.map((column) => ({ text: fieldText(block, 0, column), kinds: kindsIn(block, column, 0, 1) }));
  const rest = all.map((column) => kindsIn(block, column, 1));
  let rows = block.rows;
  while (next < window.to) {
    next = scanWindow(window, block, next, dialect);
    if (block.rows === 0) break;
    rows += block.rows;
    for (const column of all) rest[column] |= kindsIn(block, column);
  }
  const header = options.header ?? isHeader(first, rest, rows);
  const kinds = header ? rest : rest.map((seen, column) => seen | first[column].kinds);
  const names = columnNames(first.map(({ text }) => text), header, options.columns, file);
  return withTypes({ dialect, header, names, kinds }, options.types ?? {}, file);
}

/** Scans from a position of the window; what is wrong there becomes an error with line and text. */
export function scanWindow(window: RowWindow, block: FieldBlock, from: number, dialect: TextDialect): number {
  try {
    return scanRecords(block, window.bytes, from, window.to, window.atEnd, dialect);
  } catch (error) {
    if (error instanceof RecordProblem) throw window.problem(error.message, error.position, 'Correct the line, or name the delimiter if it was guessed wrongly');
    throw error;
  }
}

/**
 * A first row is a header when it has a text where a column has numbers. Where no column has numbers, when one of its
 * fields is a usual name; when there is nothing else in the file, if none of its fields is a number.
 */
function isHeader(first: readonly { readonly text: string; readonly kinds: number }[], rest: readonly number[], rows: number): boolean {
  const hasNumber = first.some(({ kinds }) => isNumeric(kinds));
  if (rows === 1) return !hasNumber;
  if (first.some(({ text, kinds }, column) => isNumeric(rest[column]) && !isNumeric(kinds) && text !== '')) return true;
  return !hasNumber && first.some(({ text }) => usualNames.test(text.trim()));
}

function columnNames(first: readonly string[], header: boolean, given: TextOptions['columns'], file: string): string[] {
  if (given !== undefined && given.length !== first.length) {
    throw new DataError(`${given.length} column names are given, and the file has ${first.length} columns`, { phase: 'read', file, advice: 'Name every column' });
  }
  const unnamed = first.map((_, column) => `column${column + 1}`);
  const byPosition = first.length === 3 || first.length === 4 ? positional.slice(0, first.length) : unnamed;
  const names = given ?? (header ? first.map((text, column) => text.trim() || unnamed[column]) : byPosition);
  const twice = names.find((name, column) => names.indexOf(name) !== column);
  if (twice !== undefined) throw new DataError('two columns have the same name', { phase: 'read', file, column: twice, advice: 'Give other names for the columns' });
  return [...names];
}

/** The layout with the types that its kinds ask for, or those given. */
export function withTypes({ dialect, header, names, kinds }: Pick<TextLayout, 'dialect' | 'header' | 'names' | 'kinds'>, given: NonNullable<TextOptions['types']>, file: string): TextLayout {
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new DataError('a type is given for a column that is not there', { phase: 'read', file, column: unknown, advice: `The columns are: ${names.join(', ')}` });
  }
  const types = names.map((name, column) => (Object.hasOwn(given, name) ? given[name] : typeOfKinds(kinds[column])));
  const schema = new Schema(names.map((name, column) => new Field(name, arrowType(types[column]), true)));
  return { dialect, header, names, kinds, types, given: names.map((name) => Object.hasOwn(given, name)), schema };
}

/** A byte order mark is no part of the first name. */
export function skipMark(window: RowWindow): void {
  const { bytes, from, to } = window;
  if (to - from >= 3 && bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf) window.advance(from + 3, 0);
}

/** Behind blank lines. Throws DataError when nothing is there. */
function firstLine(window: RowWindow, file: string): string {
  const { bytes, to } = window;
  const start = startOfText(window);
  if (start >= to) throw new DataError('the file is empty, not even a header', { phase: 'read', file });
  const lf = bytes.indexOf(0x0a, start);
  return Buffer.from(bytes.buffer, start, (lf < 0 || lf > to ? to : lf) - start).toString('utf8').trimEnd();
}

function startOfText({ bytes, from, to }: RowWindow): number {
  let start = from;
  while (start < to && (bytes[start] === 0x0a || bytes[start] === 0x0d)) start++;
  return start;
}

/** A field as a text; for names and messages only. */
export function fieldText({ bytes, starts, ends, kinds, columns }: FieldBlock, row: number, column: number): string {
  const field = row * columns + column;
  const text = Buffer.from(bytes.buffer, starts[field], ends[field] - starts[field]).toString('utf8');
  return kinds[field] === ESCAPED ? text.replaceAll('""', '"') : text;
}
