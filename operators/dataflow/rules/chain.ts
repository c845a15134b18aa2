import type { Schema } from 'apache-arrow';
import type { Operator, Source } from '../../../engine/stream/operator.ts';

/** A plan as a list: the source, and the operators from its side to the result. */
export interface Chain {
  readonly source: Source;
  /** The columns of the source. */
  readonly schema: Schema;
  readonly operators: readonly Operator[];
  /** The columns of the result that its consumer needs; default: all. */
  readonly wanted?: readonly string[];
}

/** A pure function that gives a chain with the same rows, which costs less, or the chain itself. */
export type Rule = (chain: Chain) => Chain;
