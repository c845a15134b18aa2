import type { Schema } from 'apache-arrow';
import { ArrowSource } from '../connectors/arrow/arrow-source.ts';
import type { FolderColumns } from '../connectors/folders/folder-columns.ts';
import { NdjsonSource, type NdjsonSourceOptions } from '../connectors/ndjson/ndjson-source.ts';
import type { OpenSourceOptions } from '../connectors/formats.ts';
import { openSource } from '../connectors/open-source.ts';
import type { ParquetBackendName } from '../connectors/parquet/backend.ts';
import { ParquetSource } from '../connectors/parquet/parquet-source.ts';
import type { RowSourceOptions } from '../connectors/rows/row-source.ts';
import { TextSource, checkValueOptions, type TextSourceOptions } from '../connectors/text/text-source.ts';
import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import type { ColumnNames } from '../operators/ratings/rows/column-names.ts';
import { checkColumnNames, checkOptions } from './check-options.ts';
import { type Dataset, datasetOf } from './dataset.ts';
import { type Column, col, lit } from './expressions.ts';
import type { AnyRow } from './row-types.ts';
import type { RunSession } from './run-session.ts';

/**
 * Readers of files. Nothing is opened until the rows or their schema are requested. The type of a row can be
 * given, `csv<{ user: bigint }>(path)`: it is for the compiler, and the file is not compared with it.
 */
export class Readers {
  readonly #session: RunSession;
  readonly #parquetBackend: ParquetBackendName | undefined;

  constructor(session: RunSession, parquetBackend?: ParquetBackendName) {
    [this.#session, this.#parquetBackend] = [session, parquetBackend];
    // Readers also work detached: `const { parquet } = session.read`.
    this.parquet = this.parquet.bind(this);
    this.csv = this.csv.bind(this);
    this.text = this.text.bind(this);
    this.ndjson = this.ndjson.bind(this);
    this.arrow = this.arrow.bind(this);
    this.any = this.any.bind(this);
  }

  /** Parquet: a file, a folder of part files, a glob, folders such as `year=1999`, or several of them. */
  parquet<Row extends object = AnyRow>(
    paths: string | readonly string[],
    options: ReadParquetOptions = {},
  ): Dataset<Row> {
    const { source, names } = readingOf('read.parquet', options);
    const { filter, partitions } = source;
    const parquet = new ParquetSource(paths, { backend: this.#parquetBackend, partitions });
    const rows = datasetOf<Row>(this.#session, parquet, names);
    return filter === undefined ? rows : rows.filter(conditionOf(filter));
  }

  /** Comma-separated text, plain or compressed; header and types are detected unless given. */
  csv<Row extends object = AnyRow>(
    paths: string | readonly string[],
    options: ReadTextOptions = {},
  ): Dataset<Row> {
    const { source, names } = readingOf('read.csv', options);
    return datasetOf<Row>(this.#session, new TextSource(paths, { delimiter: ',', ...source }), names);
  }

  /** Text with any delimiter, detected unless given: CSV, TSV, "::" and others. */
  text<Row extends object = AnyRow>(
    paths: string | readonly string[],
    options: ReadTextOptions = {},
  ): Dataset<Row> {
    const { source, names } = readingOf('read.text', options);
    return datasetOf<Row>(this.#session, new TextSource(paths, source), names);
  }

  /**
   * NDJSON: one JSON object a line, plain or compressed like text; fields and types are detected unless
   * given.
   */
  ndjson<Row extends object = AnyRow>(
    paths: string | readonly string[],
    options: ReadNdjsonOptions = {},
  ): Dataset<Row> {
    const { source, names } = readingOf('read.ndjson', options);
    return datasetOf<Row>(this.#session, new NdjsonSource(paths, source), names);
  }

  /** Arrow IPC, file (Feather too) or stream format; "-" is stdin. */
  arrow<Row extends object = AnyRow>(
    paths: string | readonly string[],
    options: ReadArrowOptions = {},
  ): Dataset<Row> {
    const { source, names } = readingOf('read.arrow', options);
    return datasetOf<Row>(this.#session, new ArrowSource(paths, source), names);
  }

  /** Files of any of these formats, recognized by ending and first bytes, which are read immediately. */
  async any<Row extends object = AnyRow>(
    paths: string | readonly string[],
    options: ReadAnyOptions = {},
  ): Promise<Dataset<Row>> {
    const { source, names } = readingOf('read.any', options);
    using _ = this.#session.beginPhase('open files');
    const opened = await openSource(paths, { parquetBackend: this.#parquetBackend, ...source });
    return datasetOf<Row>(this.#session, opened, names);
  }
}

/** The names of the columns with users, items, ratings and times, which all methods of the data set use. */
interface NamedColumns {
  readonly columns?: ColumnNames;
}

/** Options of folders such as `year=1999`. */
interface FolderOptions {
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
interface ColumnRange {
  readonly column: string;
  readonly min?: number | bigint;
  readonly max?: number | bigint;
}

interface ReadParquetOptions extends NamedColumns, FolderOptions {
  /**
   * Reads only rows that match the condition or range: like `filter`, but row groups are skipped if their
   * statistics exclude all rows.
   */
  readonly filter?: Column | ColumnRange;
}

interface ReadArrowOptions extends NamedColumns, FolderOptions {}

interface ReadTextOptions extends Omit<TextSourceOptions, 'columns'> {
  /** Column names by role; or a list of all column names of a file without a header, from the left. */
  readonly columns?: ColumnNames | readonly string[];
}

interface ReadNdjsonOptions extends Omit<NdjsonSourceOptions, 'columns'> {
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

const readOptionNames = {
  'read.parquet': ['filter', 'columns', 'partitions'],
  'read.arrow': ['columns', 'partitions'],
  'read.csv': textOptionNames,
  'read.text': textOptionNames,
  'read.ndjson': ['columns', 'types', 'nullValues', 'batchSize', 'partitions'],
  'read.any': ['format', 'parquetBackend', ...textOptionNames],
} as const;

const example = "{ columns: { user: 'userId', item: 'movieId' } }";

/** Checks the options of a reader, and separates the source's options from the column names. */
function readingOf<Options extends { readonly columns?: ColumnNames | readonly string[] }>(
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
function conditionOf(filter: Column | ColumnRange): Column {
  if (typeof filter !== 'object' || filter === null || !('column' in filter)) return filter;
  const { column, min, max } = filter;
  const bounds = [
    ...(min === undefined ? [] : [col(column).ge(min)]),
    ...(max === undefined ? [] : [col(column).le(max)]),
  ];
  return bounds.reduce((all, bound) => all.and(bound), lit(true));
}
