import type { Schema } from 'apache-arrow';
import type { Operator, Source } from '../../../engine/stream/operator.ts';

/** A plan as a list: the source, then the operators in order. */
export interface Chain {
  readonly source: Source;
  /** Schema of the source. */
  readonly schema: Schema;
  readonly operators: readonly Operator[];
  /** Columns of the result that the consumer needs; default: all. */
  readonly wanted?: readonly string[];
}

/** A pure function. Returns a cheaper chain with the same rows, or the chain itself. */
export type Rule = (chain: Chain) => Chain;
