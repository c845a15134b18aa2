import type { Schema } from 'apache-arrow';
import type { Bound, Expression } from '../expressions/expression.ts';
import type { JsonObject } from '../json.ts';
import type { ExecutionContext } from '../run/context.ts';
import type { SourceSplits } from './split.ts';
import type { BatchStream } from './stream.ts';

/**
 * The base of sources, operators and sinks. All are immutable and cheap to create; nothing is opened, read or
 * allocated before `execute` or `consume`. State belongs to the stream that `execute` returns, so one
 * description can run many times.
 *
 * `name` is the name in plans, events and errors (kebab-case, the file's name); `describe` returns the
 * parameters that a plan prints after it, as plain JSON.
 */
export interface Description {
  readonly name: string;
  /** The name of its time in profiles; default: `name`. */
  readonly phase?: string;
  describe(): JsonObject;
}

export interface Source extends Description {
  /** False if the rows can be read only once (an iterator of the caller's). */
  readonly replayable: boolean;
  /** Opens only what is needed to know the columns. A signal cancels it. */
  schema(needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema>;
  /**
   * Facts about the rows that are known without reading them, for example from Parquet footers. They describe
   * the files that a pass of `ctx` would read.
   */
  statistics?(ctx: ExecutionContext): Promise<SourceStatistics>;
  /** Text columns whose values are whole numbers with few exceptions, if known without reading further. */
  mixedColumns?(): Promise<readonly MixedColumn[]>;
  /**
   * Returns the source without rows for which statistics or folder names show that the predicate is false.
   * Other rows that do not match may remain. `bounds`: the predicate's conditions on single columns.
   */
  within?(bounds: readonly Bound[], predicate?: Expression): Source;
  /**
   * The parts of the source (such as row groups) that remain after `within`, large ones first, for a consumer
   * of `columns`. Determined without reading rows.
   */
  parts?(columns?: readonly string[]): Promise<readonly SourceParts[]>;
  /** `columns`: those that are needed; a source may leave out others. */
  execute(ctx: ExecutionContext, columns?: readonly string[], needs?: ValueNeeds): Promise<BatchStream>;
  /**
   * The rows of `execute` in parts of about the given number of stored bytes; undefined if they come only as
   * one stream.
   */
  splits?(
    ctx: Pick<ExecutionContext, 'signal'>,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
    targetBytes: number,
  ): Promise<SourceSplits | undefined>;
}

/** Parts of a source, such as row groups: the total number, and the number that is read. */
export interface SourceParts {
  readonly unit: string;
  /** The facts by which the other parts are unnecessary. */
  readonly by: 'names' | 'statistics';
  readonly read: number;
  readonly all: number;
}

/**
 * A column that was inferred as text because of fewer than 1 % of its values; all others are whole numbers.
 */
export interface MixedColumn {
  readonly column: string;
  readonly file: string;
  /** Line of the first text value, from 1. */
  readonly line: number;
  readonly text: string;
  /** Number of text values among the first `rows` rows. */
  readonly texts: number;
  readonly rows: number;
}

/** Types that a consumer needs of the values. A source whose values have types can ignore this. */
export interface ValueNeeds {
  /** Columns that should be numbers: a text source reads them as numbers if any value is one. */
  readonly numbers: readonly string[];
  /**
   * True: values that cannot be read become nulls, and the batch's origin has the reasons, which the consumer
   * handles. Otherwise they are errors.
   */
  readonly takesFaults: boolean;
  /** Columns of ids: a text source reads times in them as texts, as they are written. */
  readonly texts?: readonly string[];
  /**
   * Columns of ids that the consumer takes from all rows: a source may refuse one that is too long before it
   * reads it whole.
   */
  readonly ids?: readonly string[];
}

export interface SourceStatistics {
  readonly rows: number;
  /** Stored bytes. */
  readonly bytes: number;
  readonly files: number;
}

/** An operator of the library as plain JSON: its name, and the arguments of its constructor. */
export type PortableOperator = JsonObject & { readonly operator: string };

/** One stream in, one stream out, batch by batch and in order. */
export interface Operator extends Description {
  /**
   * The output columns for given input columns; throws DataError naming the existing columns if one is
   * missing.
   */
  outputSchema(input: Schema): Schema;
  /** Types that the operator needs of its input's values. */
  readonly needs?: ValueNeeds;
  /**
   * The operator as plain JSON, from which a thread creates it again. Absent if it only works in the calling
   * thread: the caller wrote it, or its result for a row depends on earlier rows.
   */
  readonly portable?: (() => PortableOperator) | undefined;
  /** True if it still uses batches after pulling the next ones, so that their memory must not be reused. */
  readonly keepsBatches?: boolean;
  /** True if its result depends on all rows together, so that it cannot run on each split of a source. */
  readonly takesAllRows?: boolean;
  /**
   * True if the operator keeps the values and origins of rows and does not read the values that its consumer
   * has needs for. The needs can then be passed on to the source. A function decides it for given needs.
   */
  readonly passesNeeds?: boolean | ((needs: ValueNeeds) => boolean);
  /**
   * True if it keeps or drops each row independently of others, so that other operators may drop rows before
   * it.
   */
  readonly isRowwise?: boolean;
  /**
   * Columns of the input that it needs for the output columns `wanted` (undefined: all); lets a source skip
   * columns.
   */
  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined;
  execute(input: BatchStream, ctx: ExecutionContext): BatchStream;
}

/** True if threads can run it on each split of a source independently. */
export function runsBySplit({ portable, takesAllRows = false }: Operator): boolean {
  return portable !== undefined && !takesAllRows;
}

/** Consumes its whole input before it has a result, such as a file or a table of keys. */
export interface Sink<Result> extends Description {
  /** Types that the sink needs of its input's values. */
  readonly needs?: ValueNeeds;
  requiredColumns(): readonly string[] | undefined;
  /**
   * The last operator before the sink. The sink accepts its output as well as plain rows, so the threads that
   * read rows can run it.
   */
  readonly encoding?: Operator | undefined;
  consume(input: BatchStream, ctx: ExecutionContext): Promise<Result>;
}

export type Side = 'left' | 'right';

/**
 * An operator with two input streams and one output stream. It is immutable like `Operator`: state belongs to
 * the stream that `execute` returns.
 */
export interface BinaryOperator extends Description {
  /** The side that is held in memory while the other one streams. */
  readonly build: Side;
  /**
   * The output columns for given input columns; throws UsageError if a column is missing or has a wrong type.
   */
  outputSchema(left: Schema, right: Schema): Schema;
  /** Columns of each input that it needs for the output columns `wanted` (undefined: all of them). */
  requiredColumns(
    wanted: readonly string[] | undefined,
    left: Schema,
    right: Schema,
  ): Readonly<Record<Side, readonly string[]>>;
  /** The operator as plain JSON, from which a thread creates it again. */
  portable(): PortableOperator;
  execute(left: BatchStream, right: BatchStream, ctx: ExecutionContext): BatchStream;
}
