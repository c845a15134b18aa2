import type { Schema } from 'apache-arrow';
import type { Bound, Expression } from '../expressions/expression.ts';
import type { JsonObject } from '../json.ts';
import type { ExecutionContext } from '../run/context.ts';
import type { SourceSplits } from './split.ts';
import type { BatchStream } from './stream.ts';

/**
 * The three kinds of description. All are immutable and cheap to make; nothing is opened, read or allocated
 * before `execute` or `consume`. State belongs to the stream that `execute` returns, so one description can
 * run many times.
 *
 * `name` is the name in plans, events and errors (kebab-case, the file's name); `describe` gives the
 * parameters that a plan prints beside it, as plain JSON.
 */
export interface Description {
  readonly name: string;
  /** The name of its time in profiles; default: `name`. */
  readonly phase?: string;
  describe(): JsonObject;
}

export interface Source extends Description {
  /** False when the rows can be pulled only once (an iterator of the caller's). */
  readonly replayable: boolean;
  /** Opens just enough to know the columns. */
  schema(needs?: ValueNeeds): Promise<Schema>;
  /** Facts about the rows that are known without reading them, e.g. from Parquet footers. */
  statistics?(): Promise<SourceStatistics>;
  /**
   * Columns of text whose values are whole numbers but for a few, as far as that is known without reading
   * further.
   */
  mixedColumns?(): Promise<readonly MixedColumn[]>;
  /**
   * The source without rows for which the predicate is not true, as far as statistics and names of folders
   * show it: other such rows may remain. `bounds`: the predicate's conditions of single columns.
   */
  within?(bounds: readonly Bound[], predicate?: Expression): Source;
  /**
   * The parts of the source that `within` leaves, large ones first, for a consumer of `columns`: known
   * without reading rows.
   */
  parts?(columns?: readonly string[]): Promise<readonly SourceParts[]>;
  /** `columns`: those that are needed; a source may leave the others out. */
  execute(ctx: ExecutionContext, columns?: readonly string[], needs?: ValueNeeds): Promise<BatchStream>;
  /**
   * The rows of `execute` cut into parts of about that many stored bytes; undefined where they come in one
   * stream only.
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
  /** The way in which the others are known not to be needed. */
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
  /** Line of the first text, from 1. */
  readonly line: number;
  readonly text: string;
  /** Number of texts among the first `rows` rows. */
  readonly texts: number;
  readonly rows: number;
}

/** Needs of a consumer about values. A source whose values have their types already need not look at it. */
export interface ValueNeeds {
  /** Columns that should be numbers: a source of text reads them as such if any of their values are. */
  readonly numbers: readonly string[];
  /**
   * Values that cannot be read come as nulls, and the batch's origin has the reasons: the consumer deals with
   * them. Otherwise they are errors.
   */
  readonly takesFaults: true;
}

export interface SourceStatistics {
  readonly rows: number;
  /** Bytes as stored. */
  readonly bytes: number;
  readonly files: number;
}

/** An operator of the library as plain JSON; `operator` is its name. */
export type PortableOperator = JsonObject & { readonly operator: string };

/** One stream in, one stream out, batch by batch and in order. */
export interface Operator extends Description {
  /**
   * The output columns for given input columns; throws DataError naming the columns that exist when one is
   * missing.
   */
  outputSchema(input: Schema): Schema;
  /** Needs of the operator about its input's values. */
  readonly needs?: ValueNeeds;
  /**
   * The operator as plain JSON, for a thread that makes it anew from that. Absent where it works in the
   * calling thread alone: it is the caller's own, or a row's fate depends on the rows before it.
   */
  portable?(): PortableOperator;
  /** True where it holds batches after the next ones were pulled, whose memory must then be theirs. */
  readonly keepsBatches?: boolean;
  /**
   * True where its result is of all rows together: it does not run over the splits of a source one by one.
   */
  readonly takesAllRows?: boolean;
  /**
   * True, or gives true, where what its consumer needs reaches the source: it keeps the values and the rows'
   * origins, and looks at none of the values itself.
   */
  readonly passesNeeds?: boolean | ((needs: ValueNeeds) => boolean);
  /** True where it keeps or leaves out each row by itself, so that other rows may be left out before it. */
  readonly isRowwise?: boolean;
  /**
   * Columns of the input that it needs to give `wanted` (all of them when undefined): lets a source prune.
   */
  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined;
  execute(input: BatchStream, ctx: ExecutionContext): BatchStream;
}

/** True where threads can run it over the splits of a source, each by itself. */
export function runsBySplit({ portable, takesAllRows = false }: Operator): boolean {
  return portable !== undefined && !takesAllRows;
}

/** Consumes its whole input before it has a result, such as a file or a table of keys. */
export interface Sink<Result> extends Description {
  /** Needs of the operator about its input's values. */
  readonly needs?: ValueNeeds;
  requiredColumns(): readonly string[] | undefined;
  /**
   * The end of a pipeline, whose result the sink takes as it takes rows: the threads that read rows run it
   * too.
   */
  readonly encoding?: Operator;
  consume(input: BatchStream, ctx: ExecutionContext): Promise<Result>;
}
