import { arrowFiles, ArrowSink, type ArrowSinkOptions } from '../connectors/arrow/arrow-sink.ts';
import { PartitionedSink } from '../connectors/folders/partitioned-sink.ts';
import { ndjsonFiles, NdjsonSink, type NdjsonSinkOptions } from '../connectors/ndjson/ndjson-sink.ts';
import type { CheckedSink, FilesOfFolders, WriteSummary } from '../connectors/output/checked-sink.ts';
import { parquetFiles, ParquetSink } from '../connectors/parquet/parquet-sink.ts';
import type { ParquetSinkOptions } from '../connectors/parquet/write/parquet-files.ts';
import { textFiles, TextSink, type TextSinkOptions } from '../connectors/text/text-sink.ts';
import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import { andThen, type LogicalPlan, runInto } from '../engine/stream/logical-plan.ts';
import type { Sink } from '../engine/stream/operator.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import { type PlannedRows, readyPlan } from './run-rows.ts';
import type { RunOptions, RunSession } from './run-session.ts';

/**
 * Rows are buffered until their folders are written. The buffer takes at most 1 / BUFFER_SHARE of the
 * session's memory budget.
 */
const BUFFER_SHARE = 8;
const MOST_BUFFER_BYTES = 128 * 2 ** 20;

/** Writers of rows. Output appears under its name only once it is complete. */
export class Writers {
  readonly #rows: PlannedRows;
  /** The columns whose values name folders. */
  readonly #columns: readonly string[];

  constructor(
    rows: { readonly plan: LogicalPlan; readonly session: RunSession },
    columns: readonly string[] = [],
  ) {
    [this.#rows, this.#columns] = [rows, columns];
  }

  /**
   * The same writers, into folders named by the values of these columns, as in Spark and Hive:
   * `write.partitionBy('genre', 'year').parquet('out')` writes
   * `out/genre=Drama/year=1999/part-00000.parquet`, whose files have the other columns. `read.parquet('out')`
   * returns the columns again, after the files' own. Null and an empty text share one folder,
   * `__HIVE_DEFAULT_PARTITION__`. Rows may have any order, which they keep inside a folder: up to 128 MiB of
   * them (an eighth of the session's memoryBudget, if that is less) are buffered, then the largest folders
   * are written, a file each. Throws UsageError for a missing column, and DataError for a column whose type
   * cannot name folders, or if no column is left for the files.
   */
  partitionBy(...columns: readonly string[]): Writers {
    if (columns.length === 0 || !columns.every((column) => typeof column === 'string'))
      throw new UsageError(
        `partitionBy takes names of columns, got ${columns.map(shown).join(', ') || 'none'}`,
      );
    return new Writers(this.#rows, columns);
  }

  /** A folder of part files, or one file if the path ends in .parquet. */
  async parquet(path: string, options: ParquetSinkOptions & RunOptions = {}): Promise<WriteSummary> {
    checkOptions(
      'write.parquet',
      options,
      ['codec', 'rowGroupSize', 'rowsPerPart', 'overwrite', 'dictionary', 'backend', ...runOptionNames],
      '{ overwrite: true }',
    );
    return this.#write(path, options, {
      one: (sink) => new ParquetSink(path, sink),
      folders: (files) => parquetFiles(path, files),
    });
  }

  /**
   * One file of separated text: commas, tabs for .tsv, "::" for .dat; compressed if the path ends in .gz,
   * .zst or .lz4; "-" is stdout.
   */
  async csv(path: string, options: TextSinkOptions & RunOptions = {}): Promise<WriteSummary> {
    checkOptions(
      'write.csv',
      options,
      ['delimiter', 'header', 'escapeFormulas', 'compression', 'overwrite', ...runOptionNames],
      '{ overwrite: true }',
    );
    return this.#write(path, options, { one: (sink) => new TextSink(path, sink), folders: textFiles });
  }

  /**
   * One file of NDJSON, one object a row; compressed if the path ends in .gz, .zst or .lz4; "-" is stdout.
   */
  async ndjson(path: string, options: NdjsonSinkOptions & RunOptions = {}): Promise<WriteSummary> {
    checkOptions(
      'write.ndjson',
      options,
      ['compression', 'overwrite', ...runOptionNames],
      '{ overwrite: true }',
    );
    return this.#write(path, options, { one: (sink) => new NdjsonSink(path, sink), folders: ndjsonFiles });
  }

  /** One Arrow IPC file, or a stream for .arrows and stdout ("-"). */
  async arrow(path: string, options: ArrowSinkOptions & RunOptions = {}): Promise<WriteSummary> {
    checkOptions(
      'write.arrow',
      options,
      ['format', 'codec', 'overwrite', ...runOptionNames],
      '{ overwrite: true }',
    );
    return this.#write(path, options, { one: (sink) => new ArrowSink(path, sink), folders: arrowFiles });
  }

  async #write<Options extends { readonly overwrite?: boolean }>(
    path: string,
    { signal, onEvent, ...options }: Options & RunOptions,
    make: {
      readonly one: (options: Omit<Options & RunOptions, keyof RunOptions>) => CheckedSink;
      readonly folders: (options: Omit<Options & RunOptions, keyof RunOptions>) => FilesOfFolders;
    },
  ): Promise<WriteSummary> {
    const columns = this.#columns;
    const { memoryBudget } = this.#rows.session;
    const sink =
      columns.length === 0
        ? make.one(options)
        : new PartitionedSink(path, make.folders(options), {
            columns,
            overwrite: options.overwrite,
            bufferBytes: Math.min(MOST_BUFFER_BYTES, memoryBudget / BUFFER_SHARE),
          });
    return writeInto(this.#rows, sink, { signal, onEvent });
  }
}

/** Writes the rows of a data set to a sink; if possible, threads read and encode them. */
export async function writeInto<Result>(
  rows: PlannedRows,
  sink: Sink<Result>,
  options: RunOptions,
): Promise<Result> {
  const { session } = rows;
  const ctx = session.context(options);
  const plan = sink.encoding ? andThen(rows.plan, sink.encoding) : rows.plan;
  return runInto(await readyPlan({ plan, session }, sink.requiredColumns(), ctx.signal), sink, ctx);
}
