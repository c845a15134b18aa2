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

/** The names of the columns with users, items, ratings and times, which all methods of the data set use. */
export interface NamedColumns {
  readonly columns?: ColumnNames;
}

/** Options of folders such as `year=1999`. */
export interface FolderOptions {
  /**
   * Columns from folder names, after the columns of the files. 'infer' (default): int32, int64, float64 or
   * date if all values can be, else utf8. 'text': all utf8. An object such as { year: 'utf8' }: types for
   * some columns. 'none': no columns.
   */
  readonly partitions?: FolderColumns;
}

export interface FromOptions extends NamedColumns {
  /** True if each iteration starts again; default: true for arrays. */
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
   * Reads only rows that match the condition or range: like `filter`, but row groups are skipped if their
   * statistics exclude all rows.
   */
  readonly filter?: Column | ColumnRange;
}

export interface ReadArrowOptions extends NamedColumns, FolderOptions {}

export interface ReadTextOptions extends Omit<TextSourceOptions, 'columns'> {
  /** Column names by role; or a list of all column names of a file without a header, from the left. */
  readonly columns?: ColumnNames | readonly string[];
}

export interface ReadNdjsonOptions extends Omit<NdjsonSourceOptions, 'columns'> {
  /** Column names by role, or a list of the fields to read. */
  readonly columns?: ColumnNames | readonly string[];
}

export interface ReadAnyOptions extends Omit<OpenSourceOptions, 'columns'> {
  /**
   * Column names by role; or a list: of all columns of text without a header, or of the NDJSON fields to
   * read.
   */
  readonly columns?: ColumnNames | readonly string[];
}

const textOptionNames = [
  'delimiter',
  'header',
  'quotes',
  'comment',
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

/** Checks the options of a reader, and separates the source's options from the column names. */
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

/** Throws UsageError unless session.from can take them; returns the options without undefined values. */
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

/** Throws UsageError for an array of rows, before reading. */
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

/** The condition of the option `filter`. */
export function conditionOf(filter: Column | ColumnRange): Column {
  if (typeof filter !== 'object' || filter === null || !('column' in filter)) return filter;
  const { column, min, max } = filter;
  const bounds = [
    ...(min === undefined ? [] : [col(column).ge(min)]),
    ...(max === undefined ? [] : [col(column).le(max)]),
  ];
  return bounds.reduce((all, bound) => all.and(bound), lit(true));
}
