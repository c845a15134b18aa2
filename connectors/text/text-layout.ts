import { counted } from '../../engine/format.ts';
import { Field, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { arrowType } from './arrow-type.ts';
import { checkDelimiter, defaultQuotes, inferDelimiter } from './dialect.ts';
import type { TextDialect } from './dialect.ts';
import { isNumeric, kindsIn, typeOfKinds } from './infer-types.ts';
import { countFields, ESCAPED, FieldBlock, RecordProblem, scanRecords } from './record-scanner.ts';
import type { RowWindow } from './row-window.ts';
import type { TextType } from './text-type.ts';

/** Known properties of a text file; the others are inferred from its first 4 MiB. */
export interface TextOptions {
  /** One or more ASCII characters between fields. */
  readonly delimiter?: string;
  /** True when the first row names the columns. */
  readonly header?: boolean;
  /** True when fields may stand in double quotes. Default: true unless the delimiter is "::". */
  readonly quotes?: boolean;
  /** Names of the columns, for files without a header (or instead of it). */
  readonly columns?: readonly string[];
  /** Types by column's name, for some or all columns. */
  readonly types?: Readonly<Record<string, TextType>>;
}

/** The properties of a text file, given and inferred. */
export interface TextLayout {
  readonly dialect: TextDialect;
  /** True when the first row is skipped. */
  readonly header: boolean;
  readonly names: readonly string[];
  /** Kinds of values of each column in the first part of the file (see kindsIn). */
  readonly kinds: readonly number[];
  readonly types: readonly TextType[];
  /** True for columns whose types the user gave. */
  readonly given: readonly boolean[];
  readonly schema: Schema;
}

const positional = ['user', 'item', 'rating', 'timestamp'];
const usualNames = /^(user|item|movie|product|artist|book|track|title|name|rating|score|timestamp|date|time|id|.*[ _]?id)s?$/i;
const MOST_FIELDS = 1 << 20;

/** Rows of a block: the wanted number, fewer for very wide and very small files. */
export function blockRows(window: RowWindow, columns: number, wanted: number): number {
  return Math.max(1, Math.min(wanted, Math.floor(MOST_FIELDS / columns), window.mostRows(columns)));
}

/** Infers the layout of the file in the window, which must just have been filled and is not advanced. */
export function inferLayout(window: RowWindow, file: string, options: TextOptions, batchSize: number): TextLayout {
  skipMark(window);
  const delimiter = options.delimiter ?? inferDelimiter(firstLine(window, file), file);
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

/** Scans from a position of the window. Throws DataError with the line and its text. */
export function scanWindow(window: RowWindow, block: FieldBlock, from: number, dialect: TextDialect): number {
  try {
    return scanRecords(block, window.bytes, from, window.to, window.atEnd, dialect);
  } catch (error) {
    if (error instanceof RecordProblem) throw window.problem(error.message, error.position, 'Correct the line, or set the delimiter if it was inferred wrongly');
    throw error;
  }
}

/**
 * True for a first row that is a header. It is one when it has a text where a column has numbers. Where no column has numbers,
 * one of its fields must be a usual name; as the only row of the file, none of its fields may be a number.
 */
function isHeader(first: readonly { readonly text: string; readonly kinds: number }[], rest: readonly number[], rows: number): boolean {
  const hasNumber = first.some(({ kinds }) => isNumeric(kinds));
  if (rows === 1) return !hasNumber;
  if (first.some(({ text, kinds }, column) => isNumeric(rest[column]) && !isNumeric(kinds) && text !== '')) return true;
  return !hasNumber && first.some(({ text }) => usualNames.test(text.trim()));
}

function columnNames(first: readonly string[], header: boolean, given: TextOptions['columns'], file: string): string[] {
  if (given !== undefined && given.length !== first.length) {
    throw new DataError(`${counted(given.length, 'column name')} ${given.length === 1 ? 'is' : 'are'} given, and the file has ${counted(first.length, 'column')}`, { phase: 'read', file, advice: 'Name every column' });
  }
  const unnamed = first.map((_, column) => `column${column + 1}`);
  const byPosition = first.length === 3 || first.length === 4 ? positional.slice(0, first.length) : unnamed;
  const names = given ?? (header ? first.map((text, column) => text.trim() || unnamed[column]) : byPosition);
  const twice = names.find((name, column) => names.indexOf(name) !== column);
  if (twice !== undefined) throw new DataError('two columns have the same name', { phase: 'read', file, column: twice, advice: 'Give other names in the option columns' });
  return [...names];
}

/** The layout with the given types, and elsewhere those of its kinds. */
export function withTypes({ dialect, header, names, kinds }: Pick<TextLayout, 'dialect' | 'header' | 'names' | 'kinds'>, given: NonNullable<TextOptions['types']>, file: string): TextLayout {
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new DataError('a type is given for a column that is not there', { phase: 'read', file, column: unknown, advice: `The columns are: ${names.join(', ')}` });
  }
  const types = names.map((name, column) => (Object.hasOwn(given, name) ? given[name] : typeOfKinds(kinds[column])));
  const schema = new Schema(names.map((name, column) => new Field(name, arrowType(types[column]), true)));
  return { dialect, header, names, kinds, types, given: names.map((name) => Object.hasOwn(given, name)), schema };
}

/** Passes a byte order mark, which does not belong to the first name. */
export function skipMark(window: RowWindow): void {
  const { bytes, from, to } = window;
  if (to - from >= 3 && bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf) window.advance(from + 3, 0);
}

/** The first line that is not blank. Throws DataError when there is none. */
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

/** The text of a field, for names and messages. */
export function fieldText({ bytes, starts, ends, kinds, columns }: FieldBlock, row: number, column: number): string {
  const field = row * columns + column;
  const text = Buffer.from(bytes.buffer, starts[field], ends[field] - starts[field]).toString('utf8');
  return kinds[field] === ESCAPED ? text.replaceAll('""', '"') : text;
}
