import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../json.ts';
import type { ExecutionContext } from '../run/context.ts';
import type { BatchStream } from './stream.ts';

/**
 * The three kinds of description. All are immutable and cheap to make; nothing is opened, read or allocated before
 * `execute` or `consume`. State belongs to the stream that `execute` returns, so one description can run many times.
 *
 * `name` is the name in plans, events and errors (kebab-case, the file's name); `describe` gives the parameters that
 * a plan prints beside it, as plain JSON.
 */
export interface Description {
  readonly name: string;
  describe(): JsonObject;
}

export interface Source extends Description {
  /** False when the rows can be pulled only once (somebody else's iterator). */
  readonly replayable: boolean;
  /** Opens just enough to know the columns. */
  schema(): Promise<Schema>;
  /** What is known about the rows without reading them, e.g. from Parquet footers. */
  statistics?(): Promise<SourceStatistics>;
  /** `columns`: the ones that are needed; a source may prune the others or ignore the wish. */
  execute(ctx: ExecutionContext, columns?: readonly string[]): Promise<BatchStream>;
}

export interface SourceStatistics {
  readonly rows: number;
  /** Bytes as stored. */
  readonly bytes: number;
  readonly files: number;
}

/** One stream in, one stream out, batch by batch and in order. */
export interface Operator extends Description {
  /** The columns it gives for the columns it gets; throws DataError naming the columns there are when one is missing. */
  outputSchema(input: Schema): Schema;
  /** Columns of the input that it needs to give `wanted` (all of them when undefined): lets a source prune. */
  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined;
  execute(input: BatchStream, ctx: ExecutionContext): BatchStream;
}

/** Consumes its whole input before it has a result: the end of one stage and the start of the next. */
export interface Sink<Result> extends Description {
  requiredColumns(): readonly string[] | undefined;
  consume(input: BatchStream, ctx: ExecutionContext): Promise<Result>;
}
