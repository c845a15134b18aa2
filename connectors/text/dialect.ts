import { shown } from '../../engine/shown.ts';
import { compressionOf } from '../compression/compressions.ts';
import { UsageError } from '../../engine/errors.ts';

/** Delimiter and quoting of a text file. */
export interface TextDialect {
  /** One or more ASCII characters. */
  readonly delimiter: string;
  /** True if fields may be in double quotes, with "" for a quote (RFC 4180). */
  readonly quotes: boolean;
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

/**
 * Infers the delimiter from a file's first line: "::" if it occurs, else the most frequent of comma, tab,
 * semicolon and bar outside of quotes, else a single space between numbers. A file of one column gets a
 * comma, ".tsv" a tab. With decimal commas, the comma is considered last.
 */
export function inferDelimiter(firstLine: string, file: string, decimalComma: boolean): string {
  const bare = firstLine.replaceAll(/"(?:[^"]|"")*"/g, '');
  if (bare.includes('::')) return '::';
  const counts = candidates
    .filter((candidate) => !decimalComma || candidate !== ',')
    .map((candidate) => ({ candidate, count: bare.split(candidate).length - 1 }));
  const most = counts.reduce((best, next) => (next.count > best.count ? next : best));
  if (/\.tsv$/i.test(compressionOf(file).bare)) return '\t';
  if (most.count > 0) return most.candidate;
  const words = bare.trim().split(' ');
  return words.length > 1 && words.every((word) => number.test(word)) ? ' ' : ',';
}

/**
 * True for delimiters whose fields may be quoted: all but "::", since titles in MovieLens start with literal
 * quotes.
 */
export function defaultQuotes(delimiter: string): boolean {
  return delimiter !== '::';
}
