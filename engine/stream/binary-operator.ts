import type { Schema } from 'apache-arrow';
import type { ExecutionContext } from '../run/context.ts';
import type { Description, PortableOperator } from './operator.ts';
import type { BatchStream } from './stream.ts';

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
