import type { Schema } from 'apache-arrow';
import type { ExecutionContext } from '../run/context.ts';
import type { Description, PortableOperator } from './operator.ts';
import type { BatchStream } from './stream.ts';

export type Side = 'left' | 'right';

/**
 * Two streams in, one stream out. Immutable as an `Operator` is: state belongs to the stream that `execute`
 * gives.
 */
export interface BinaryOperator extends Description {
  /** The side that is held in memory, while the other one streams. */
  readonly build: Side;
  /**
   * The output columns for given input columns; throws UsageError where a column is missing or does not fit.
   */
  outputSchema(left: Schema, right: Schema): Schema;
  /** Columns of each input that it needs to give `wanted` (all of them when undefined). */
  requiredColumns(
    wanted: readonly string[] | undefined,
    left: Schema,
    right: Schema,
  ): Readonly<Record<Side, readonly string[]>>;
  /** The operator as plain JSON, for a thread that makes it anew from that. */
  portable(): PortableOperator;
  execute(left: BatchStream, right: BatchStream, ctx: ExecutionContext): BatchStream;
}
