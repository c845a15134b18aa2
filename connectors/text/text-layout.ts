import { DataError, UsageError } from '../../engine/errors.ts';
import type { Message } from '../../engine/events.ts';
import { counted, shown } from '../../engine/format.ts';
import type { MixedColumn } from '../../engine/stream/operator.ts';
import { firstTwice } from '../files/common-schema.ts';
import type { FieldBlock } from '../lines/field-block.ts';
import { isNumeric, isTextAndWhole, isTyped, kindsIn, textsAmongWhole } from '../lines/infer-types.ts';
import type { ValueRules } from '../lines/read-column.ts';
import {
  fieldText,
  inspectedRows,
  linesFrom,
  MOST_COLUMNS,
  type RowLayout,
  type RowScan,
  rulesOf,
  type ValueOptions,
  withTypes,
} from '../lines/row-layout.ts';
import type { RowWindow } from '../lines/row-window.ts';
import {
  checkDelimiter,
  defaultQuotes,
  inferDelimiter,
  type TextDialect,
  withoutQuoted,
  wordsInEach,
} from './dialect.ts';
import { countFields, scanRecords, findTabQuotes } from './record-scanner.ts';

/** Properties of a text file. Those not given are inferred from its first 4 MiB. */
export interface TextOptions extends ValueOptions {
  /** One or more ASCII characters between fields. */
  readonly delimiter?: string;
  /** True when the first row names the columns. */
  readonly header?: boolean;
  /**
   * True if fields may be in double quotes. Default: true; but false if the delimiter is "::", or a tab and no
   * field that begins with a quote ends with one.
   */
  readonly quotes?: boolean;
  /**
   * Text that begins a comment line, anywhere in the file; '' for no comments. Default: lines at the
   * beginning that start with % or # and have another number of fields than the first row after them.
   */
  readonly comment?: string;
  /** Names of the columns, for files without a header (or to replace it). */
  readonly columns?: readonly string[];
}

/** Properties of a text file, given and inferred. */
export interface TextLayout extends RowLayout {
  readonly dialect: TextDialect;
  /** Columns that were inferred as text only because of a few values in the first part of the file. */
  readonly mixed: readonly MixedColumn[];
}

/** Lines by which the delimiter is inferred. */
const SAMPLED_LINES = 100;

const positional = ['user', 'item', 'rating', 'timestamp'];
const usualNames =
  /^(user|item|movie|product|artist|book|track|title|name|rating|score|timestamp|date|time|id|.*[ _]?id)s?$/i;

/** The row scanners of a dialect. */
export function readersOf(dialect: TextDialect): Pick<RowLayout, 'scanner' | 'marks'> {
  const scan = scannerOf(dialect);
  const { delimiter, quotes, comment } = dialect;
  return {
    scanner: () => scan,
    ...(delimiter.length === 1 && !comment && { marks: { delimiter: delimiter.charCodeAt(0), quotes } }),
  };
}

function scannerOf(dialect: TextDialect): RowScan {
  return (block, bytes, from, bounds) => scanRecords(block, bytes, from, bounds, dialect);
}

/** Infers the file's layout from a window that was just filled; the window does not advance. */
export function inferLayout(
  window: RowWindow,
  file: string,
  options: TextOptions,
  batchSize: number,
): TextLayout {
  const rules = rulesOf(options);
  const { dialect, start, head, notes } = inferDialect(window, file, options);
  const columns = columnsOf(window, start, dialect, options.columns !== undefined);
  const all = Array.from({ length: columns }, (_, column) => column);
  const mixed = new MixedColumns(window, rules);
  let first: { readonly text: string; readonly kinds: number }[] = [];
  const rest = all.map(() => 0);
  let rows = 0;
  for (const block of inspectedRows(window, columns, batchSize, start, scannerOf(dialect))) {
    const isFirst = rows === 0;
    if (isFirst)
      first = all.map((column) => ({
        text: fieldText(block, 0, column),
        kinds: kindsIn(block, column, rules, 0, 1),
      }));
    rows += block.rows;
    for (const column of all) {
      rest[column] |= kindsIn(block, column, rules, isFirst ? 1 : 0);
      // The first row counts unless it may be a header.
      if (isFirst && options.header === false)
        mixed.add(block, column, rest[column] | first[column].kinds, 0);
      else mixed.add(block, column, rest[column], isFirst ? 1 : 0);
    }
  }
  if (rows === 0) throw new DataError('the file has no rows, not even a header', { phase: 'read', file });
  const header = options.header ?? isHeader(first, rest, rows);
  const kinds = header ? rest : rest.map((seen, column) => seen | first[column].kinds);
  const names = columnNames(
    first.map(({ text }) => text),
    header,
    options.columns,
    file,
  );
  const types = options.types ?? {};
  const found = mixed
    .result({ file, names, kinds, rows: header ? rows - 1 : rows })
    .filter(({ column }) => !Object.hasOwn(types, column));
  return withTypes(
    { dialect, header, names, kinds, rules, mixed: found, head, notes, ...readersOf(dialect) },
    types,
    file,
  );
}

/** The dialect of a file, the position of its first row, and what was skipped or decided for it. */
interface FoundDialect extends Pick<RowLayout, 'head' | 'notes'> {
  readonly dialect: TextDialect;
  readonly start: number;
}

function inferDialect(window: RowWindow, file: string, options: TextOptions): FoundDialect {
  const { decimalComma = false, comment } = options;
  const infer = (from: number) =>
    options.delimiter ?? inferDelimiter(firstLines(window, from), file, decimalComma);
  const head = findHead(window, comment, infer);
  const [first] = linesFrom(window, head.end);
  if (first === undefined)
    throw new DataError('the file is empty, not even a header', { phase: 'read', file });
  const { start } = first;
  if (first.end === window.to && /\r./.test(withoutQuoted(first.text)))
    throw new DataError('its lines end with carriage returns alone', {
      phase: 'read',
      file,
      advice: "Convert the file, for example with tr '\\r' '\\n'",
    });
  const delimiter = head.delimiter ?? infer(start);
  checkDelimiter(delimiter);
  const quoting = inferQuotes(window, file, { start, delimiter, given: options.quotes });
  const skipped = head.comments > 0 && comment === undefined ? [skippedComments(head.comments, file)] : [];
  return {
    dialect: { delimiter, ...quoting.dialect, ...(comment && { comment }) },
    start,
    ...(head.end > window.from && {
      head: {
        lines: window.lineOf(head.end) - window.lineOf(window.from),
        end: window.position + head.end - window.from,
      },
    }),
    notes: [...skipped, ...quoting.notes, ...oneColumn(firstLines(window, start), delimiter, file)],
  };
}

function firstLines(window: RowWindow, from: number): readonly string[] {
  const lines: string[] = [];
  for (const { text } of linesFrom(window, from)) {
    lines.push(text);
    if (lines.length === SAMPLED_LINES) break;
  }
  return lines;
}

/** Says so if lines of several words are one column, since the space between them may be the delimiter. */
function oneColumn(lines: readonly string[], delimiter: string, file: string): readonly Message[] {
  const words = wordsInEach(lines);
  if (words === 1 || lines.some((line) => line.includes(delimiter))) return [];
  const text = `each line of ${file} has ${words} words, which are read as one column; the option delimiter decides otherwise`;
  return [{ type: 'note', code: 'read-as-one-column', text }];
}

function skippedComments(count: number, file: string): Message {
  const text = `${counted(count, 'comment line')} at the beginning of ${file} ${count === 1 ? 'is' : 'are'} skipped; the option comment decides otherwise`;
  return { type: 'note', code: 'comments-skipped', count, text };
}

/** In texts between tabs, quotes are mostly part of the text: they count only if a field is properly quoted. */
function inferQuotes(
  window: RowWindow,
  file: string,
  row: { readonly start: number; readonly delimiter: string; readonly given: boolean | undefined },
): { readonly dialect: Pick<TextDialect, 'quotes' | 'doubtsQuotes'>; readonly notes: readonly Message[] } {
  const { start, delimiter, given } = row;
  if (given !== undefined || delimiter !== '\t')
    return { dialect: { quotes: given ?? defaultQuotes(delimiter) }, notes: [] };
  const { closes, open, first } = findTabQuotes(window.bytes, start, window.to);
  if (closes || open === 0) return { dialect: { quotes: true, doubtsQuotes: true }, notes: [] };
  const text = `${counted(open, 'field')} of ${file} begin with a quote and do not end with one, the first in line ${window.lineOf(first)}: quotes are read as part of the text; the option quotes decides otherwise`;
  return {
    dialect: { quotes: false },
    notes: [{ type: 'warning', code: 'quotes-read-as-text', count: open, text }],
  };
}

/**
 * Number of fields in the first row, which is at `first`. Throws DataError if there are too many and the user
 * named none.
 */
function columnsOf(window: RowWindow, first: number, dialect: TextDialect, areNamed: boolean): number {
  const columns = countFields(window.bytes, first, window.to, dialect);
  if (columns <= MOST_COLUMNS || areNamed) return columns;
  throw window.problem(
    `the row has ${columns} fields, and at most ${MOST_COLUMNS} columns are found by themselves`,
    first,
    'Check the delimiter, cut the columns that are needed out of the file, or name all in the option columns',
  );
}

/**
 * True if the first row is a header. If some columns are numbers or times, the first row must have texts in
 * them, and no more numbers and times than texts; with fewer texts it is a row with a bad value. If no column
 * has numbers or times, one field must be a usual name of a column. If the first row is the only one, none of
 * its fields may be a number or a time.
 */
function isHeader(
  first: readonly { readonly text: string; readonly kinds: number }[],
  rest: readonly number[],
  rows: number,
): boolean {
  const hasTyped = first.some(({ kinds }) => isTyped(kinds));
  if (rows === 1) return !hasTyped;
  const isNamed = first.some(({ text }) => usualNames.test(text.trim()));
  const overTyped = first.filter((_, column) => isTyped(rest[column]));
  const texts = overTyped.filter(({ text, kinds }) => !isTyped(kinds) && text !== '').length;
  if (texts > 0 && (isNamed || 2 * texts >= overTyped.length)) return true;
  return !hasTyped && isNamed;
}

function columnNames(
  first: readonly string[],
  header: boolean,
  given: TextOptions['columns'],
  file: string,
): string[] {
  if (given !== undefined && given.length !== first.length) {
    throw new DataError(
      `${counted(given.length, 'column name')} ${given.length === 1 ? 'is' : 'are'} given, and the file has ${counted(first.length, 'column')}`,
      { phase: 'read', file, advice: 'Name every column' },
    );
  }
  const unnamed = first.map((_, column) => `column${column + 1}`);
  const byPosition = first.length === 3 || first.length === 4 ? positional.slice(0, first.length) : unnamed;
  const names = given ?? (header ? first.map((text, column) => text.trim() || unnamed[column]) : byPosition);
  const twice = firstTwice(names);
  if (twice !== undefined)
    throw new DataError('two columns have the same name', {
      phase: 'read',
      file,
      column: twice,
      advice: 'Give other names in the option columns',
    });
  return [...names];
}

/**
 * A column with more texts than this is a text column, and its further rows are not inspected for exceptions.
 */
const MOST_TEXTS = 1000;

/** A column is reported if fewer than one of this number of rows has a text. */
const ROWS_PER_TEXT = 100;

interface CountedFile {
  readonly file: string;
  readonly names: readonly string[];
  /** Kinds of values of each column. */
  readonly kinds: readonly number[];
  readonly rows: number;
}

interface Found {
  readonly line: number;
  readonly text: string;
  readonly texts: number;
}

/**
 * Finds columns that are text only because of a few values. Only the rows of columns with texts are read
 * again.
 */
class MixedColumns {
  readonly #window: RowWindow;
  readonly #rules: ValueRules;
  /** Undefined for columns that cannot be reported. */
  readonly #found = new Map<number, Found | undefined>();

  constructor(window: RowWindow, rules: ValueRules) {
    this.#window = window;
    this.#rules = rules;
  }

  /**
   * Counts the texts in the block's rows from `from` on. `kinds`: the kinds found in the column so far,
   * including this block.
   */
  add(block: FieldBlock, column: number, kinds: number, from: number): void {
    const before = this.#found.get(column);
    if (kinds === 0 || isNumeric(kinds) || (before === undefined && this.#found.has(column))) return;
    const texts = textsAmongWhole(block, column, this.#rules, {
      from,
      most: MOST_TEXTS - (before?.texts ?? 0),
    });
    if (texts?.length === 0) return;
    this.#found.set(
      column,
      texts &&
        (before ? { ...before, texts: before.texts + texts.length } : this.#first(block, column, texts)),
    );
  }

  #first(block: FieldBlock, column: number, texts: readonly number[]): Found {
    const line = this.#window.lineOf(block.starts[texts[0] * block.columns + column]);
    return { line, text: fieldText(block, texts[0], column), texts: texts.length };
  }

  /** The columns to report, for the file's first `rows` rows. */
  result({ file, names, kinds, rows }: CountedFile): readonly MixedColumn[] {
    return [...this.#found].flatMap(([column, found]) => {
      const isFew = found !== undefined && found.texts * ROWS_PER_TEXT < rows;
      return isFew && isTextAndWhole(kinds[column]) ? [{ file, column: names[column], rows, ...found }] : [];
    });
  }
}

/** The lines before the first row or header. */
interface TextHead {
  /** Position in the window after them. */
  readonly end: number;
  readonly comments: number;
  /** The delimiter that Excel's first line, such as `sep=;`, gives. */
  readonly delimiter?: string;
}

/** Throws UsageError for a text that cannot begin comment lines. */
export function checkComment(comment: string): void {
  if (typeof comment === 'string' && /^[\x20-\x7e]{0,16}$/.test(comment) && !comment.startsWith('"')) return;
  throw new UsageError(`lines that begin with ${shown(comment)} cannot be comments`, {
    advice: "Use ASCII characters other than quotes and line ends, such as # or %, or '' for no comments",
  });
}

/**
 * Finds Excel's line `sep=;` and comment lines at the beginning of a file. `comment`: see TextOptions.
 * `delimiterOf` finds the delimiter of the rows from a position on.
 */
function findHead(
  window: RowWindow,
  comment: string | undefined,
  delimiterOf: (from: number) => string,
): TextHead {
  const marked: Line[] = [];
  const isMarked = (text: string) =>
    comment === undefined ? /^[%#]/.test(text) : comment !== '' && text.startsWith(comment);
  let row: number | undefined;
  for (const line of linesFrom(window, window.from)) {
    const separator = marked.length === 0 ? /^sep=(.)$/i.exec(line.text)?.[1] : undefined;
    if (separator !== undefined) return { end: line.end, comments: 0, delimiter: separator };
    if (!isMarked(line.text)) {
      row = line.start;
      break;
    }
    marked.push(line);
  }
  const comments =
    comment !== undefined
      ? marked
      : row === undefined
        ? []
        : commentsBefore(window, row, marked, delimiterOf(row));
  return { end: comments.at(-1)?.end ?? window.from, comments: comments.length };
}

interface Line {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** The marked lines before the first that has as many fields as the row; a mark between spaces is no field. */
function commentsBefore(
  { bytes, to }: RowWindow,
  row: number,
  marked: readonly Line[],
  delimiter: string,
): readonly Line[] {
  const fieldsAt = (start: number) => countFields(bytes, start, to, { delimiter, quotes: true });
  const fields = fieldsAt(row);
  const first = marked.findIndex(
    ({ text, start }) => fieldsAt(start) === fields && !(delimiter === ' ' && /^[%#]+ /.test(text)),
  );
  return first < 0 ? marked : marked.slice(0, first);
}
