import type { Schema } from 'apache-arrow';
import type { OpenSourceOptions } from '../connectors/open-source.ts';
import type { FolderColumns } from '../connectors/folders/folder-columns.ts';
import type { NdjsonSourceOptions } from '../connectors/ndjson/ndjson-source.ts';
import type { RowSourceOptions } from '../connectors/rows/row-source.ts';
import { checkValueOptions, type TextSourceOptions } from '../connectors/text/text-source.ts';
import type { ColumnNames } from '../operators/ratings/rows/column-names.ts';
import { UsageError } from '../engine/errors.ts';
import { type Column, col, lit } from './expressions.ts';
import { checkColumnNames, checkOptions } from './check-options.ts';
import { shown } from '../engine/shown.ts';

/**
 * The names of the columns that hold users, items, ratings and times, which all that takes the data set then
 * uses.
 */
export interface NamedColumns {
  readonly columns?: ColumnNames;
}

/** Options of folders such as `year=1999`. */
export interface FolderOptions {
  /**
   * The columns that the names of folders give, after those of the files: 'infer' (default) finds int32,
   * int64, float64 or date where all values are such, else utf8; 'text' takes all as utf8; types by name,
   * such as { year: 'utf8' }, for some of them; 'none' gives no columns.
   */
  readonly partitions?: FolderColumns;
}

export interface FromOptions extends NamedColumns {
  /** True where each iteration starts anew; default: of arrays. */
  readonly replayable?: boolean;
}

export interface FromRowsOptions extends NamedColumns, RowSourceOptions {}

/** A range of one column's values, both ends included. */
export interface ColumnRange {
  readonly column: string;
  readonly min?: number | bigint;
  readonly max?: number | bigint;
}

export interface ReadParquetOptions extends NamedColumns, FolderOptions {
  /**
   * Reads the rows of which the condition is true, or whose value is in the range: as `filter`, with row
   * groups left out whose statistics exclude all of their rows.
   */
  readonly filter?: Column | ColumnRange;
}

export interface ReadArrowOptions extends NamedColumns, FolderOptions {}

export interface ReadTextOptions extends Omit<TextSourceOptions, 'columns'> {
  /**
   * The names of columns by role; or a list of the names of all columns of a file without a header, from the
   * left.
   */
  readonly columns?: ColumnNames | readonly string[];
}

export interface ReadNdjsonOptions extends Omit<NdjsonSourceOptions, 'columns'> {
  /** The names of columns by role, or a list of the fields to read. */
  readonly columns?: ColumnNames | readonly string[];
}

export interface ReadAnyOptions extends Omit<OpenSourceOptions, 'columns'> {
  /**
   * The names of columns by role; or a list: of all columns of a text without a header, or of the fields of
   * NDJSON to read.
   */
  readonly columns?: ColumnNames | readonly string[];
}

const textOptionNames = [
  'delimiter',
  'header',
  'quotes',
  'columns',
  'types',
  'nullValues',
  'decimalComma',
  'batchSize',
  'partitions',
] as const;

export const readOptionNames = {
  'read.parquet': ['filter', 'columns', 'partitions'],
  'read.arrow': ['columns', 'partitions'],
  'read.csv': textOptionNames,
  'read.text': textOptionNames,
  'read.ndjson': ['columns', 'types', 'nullValues', 'batchSize', 'partitions'],
  'read.any': ['format', 'parquetBackend', ...textOptionNames],
} as const;

const example = "{ columns: { user: 'userId', item: 'movieId' } }";

/** Checks the options of a reader and separates the options of its source from the names of columns. */
export function readingOf<Options extends { readonly columns?: ColumnNames | readonly string[] }>(
  method: keyof typeof readOptionNames,
  options: Options,
): {
  readonly source: Omit<Options, 'columns'> & { readonly columns?: readonly string[] };
  readonly names: ColumnNames;
} {
  checkOptions(
    method,
    options,
    readOptionNames[method] as readonly string[] as readonly (keyof Options & string)[],
    example,
  );
  const { columns, ...source } = options;
  if (columns === undefined) return { source, names: {} };
  if (isList(columns)) return { source: { ...source, columns }, names: {} };
  checkColumnNames(`the option columns of ${method}`, columns);
  return { source, names: columns };
}

function isList(columns: ColumnNames | readonly string[]): columns is readonly string[] {
  return Array.isArray(columns);
}

/** Throws UsageError unless session.from can take them; the options without what is undefined. */
export function checkBatches(
  batches: unknown,
  schema: Schema | undefined,
  options: FromOptions,
): FromOptions {
  checkOptions('session.from', options, ['replayable', 'columns'], '{ replayable: true }');
  if (options.columns !== undefined) checkColumnNames('the option columns of session.from', options.columns);
  if (schema !== undefined && !Array.isArray((schema as Partial<Schema> | null)?.fields)) {
    throw new UsageError(
      `session.from takes batches, their schema and options, but the schema is ${shown(schema)}`,
      { advice: 'Without a schema: session.from(batches, undefined, options)' },
    );
  }
  if (Array.isArray(batches)) requireBatches(batches);
  return options;
}

/** Checks the options of session.fromRows. */
export function checkRows(options: FromRowsOptions): FromRowsOptions {
  checkOptions('session.fromRows', options, ['types', 'columns'], "{ types: { user: 'utf8' } }");
  if (options.columns !== undefined)
    checkColumnNames('the option columns of session.fromRows', options.columns);
  checkValueOptions(options);
  return options;
}

/** Throws UsageError for an array of rows, before anything is read. */
function requireBatches(batches: readonly unknown[]): void {
  const first = batches[0];
  const plain =
    typeof first !== 'object' ||
    first === null ||
    [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(first));
  if (batches.length > 0 && plain)
    throw new UsageError(
      'session.from takes Arrow record batches; for plain objects there is session.fromRows(rows)',
    );
}

/** The condition of the option filter; undefined for none. */
export function conditionOf(filter: Column | ColumnRange): Column {
  if (typeof filter !== 'object' || filter === null || !('column' in filter)) return filter;
  const { column, min, max } = filter;
  const bounds = [
    ...(min === undefined ? [] : [col(column).ge(min)]),
    ...(max === undefined ? [] : [col(column).le(max)]),
  ];
  return bounds.reduce((all, bound) => all.and(bound), lit(true));
}
