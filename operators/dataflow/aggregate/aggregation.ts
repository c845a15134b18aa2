import type { Expression } from '../../../engine/expressions/expression.ts';

export type AggregateName =
  | 'count'
  | 'countDistinct'
  | 'sum'
  | 'mean'
  | 'stddev'
  | 'min'
  | 'max'
  | 'first'
  | 'last'
  | 'collectList';

/** A named aggregate of a group's rows. `value` is absent for a `count` of rows. */
export interface Aggregation {
  readonly name: string;
  readonly call: AggregateName;
  readonly value?: Expression;
}
