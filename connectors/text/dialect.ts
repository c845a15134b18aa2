import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { compressionOf } from '../compression/compressions.ts';

/** Delimiter and quoting of a text file. */
export interface TextDialect {
  /** One or more ASCII characters. */
  readonly delimiter: string;
  /** True if fields may be in double quotes, with "" for a quote (RFC 4180). */
  readonly quotes: boolean;
  /** True if quotes were inferred, so that a quoted field may be the rows between two stray quotes. */
  readonly doubtsQuotes?: boolean;
  /** Lines that begin with this text are skipped. */
  readonly comment?: string;
  /** In writing: true for a ' before texts that a spreadsheet would take for formulas. */
  readonly escapeFormulas?: boolean;
}

const candidates = [',', '\t', ';', '|'] as const;
const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Throws UsageError for a delimiter that could be part of the data. */
export function checkDelimiter(delimiter: string): void {
  const isAscii =
    typeof delimiter === 'string' &&
    [...delimiter].every((character) => character > '\0' && character < '\x80');
  if (isAscii && delimiter.length > 0 && delimiter.length <= 16 && !/["\r\n\w.+-]/.test(delimiter)) return;
  throw new UsageError(`the delimiter ${shown(delimiter)} cannot be used`, {
    advice:
      'Use ASCII characters other than letters, digits, quotes and line ends, such as , or ; or :: or a tab',
  });
}

/** A line without its quoted fields. */
export function withoutQuoted(line: string): string {
  return line.replaceAll(/"(?:[^"]|"")*"/g, '');
}

/**
 * Infers the delimiter from a file's first line: "::" if it occurs, else the most frequent of comma, tab,
 * semicolon and bar outside of quotes, else a single space if the first lines are a table (see isTable). A
 * file of one column gets a comma, ".tsv" a tab. With decimal commas, the comma is considered last.
 */
export function inferDelimiter(lines: readonly string[], file: string, decimalComma: boolean): string {
  const bare = withoutQuoted(lines[0]);
  if (bare.includes('::')) return '::';
  const counts = candidates
    .filter((candidate) => !decimalComma || candidate !== ',')
    .map((candidate) => ({ candidate, count: bare.split(candidate).length - 1 }));
  const most = counts.reduce((best, next) => (next.count > best.count ? next : best));
  if (/\.tsv$/i.test(compressionOf(file).bare)) return '\t';
  if (most.count > 0) return most.candidate;
  return isTable(lines.map(wordsOf)) ? ' ' : ',';
}

/** The number of words that each of the lines has; 1 if their numbers differ. */
export function wordsInEach(lines: readonly string[]): number {
  const [first, ...others] = lines.map((line) => wordsOf(line).length);
  return others.every((length) => length === first) ? first : 1;
}

function wordsOf(line: string): readonly string[] {
  return line.trim().split(' ');
}

/**
 * True if all rows have the same number of fields and one of three or more columns, or both of two, have only
 * numbers, apart from a header. Other texts with spaces may be names in a single column.
 */
function isTable(rows: readonly (readonly string[])[]): boolean {
  const [first, ...others] = rows;
  if (first.length < 2 || others.some(({ length }) => length !== first.length)) return false;
  if (others.length === 0) return first.every((word) => number.test(word));
  const isNumber = (_: string, column: number) => others.every((row) => number.test(row[column]));
  return first.length === 2 ? first.every(isNumber) : first.some(isNumber);
}

/**
 * True for delimiters whose fields may be quoted: all but "::", since titles in MovieLens start with literal
 * quotes.
 */
export function defaultQuotes(delimiter: string): boolean {
  return delimiter !== '::';
}
