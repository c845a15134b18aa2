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

/** An aggregate of a group's rows under a name; `value` is absent of `count` of rows. */
export interface Aggregation {
  readonly name: string;
  readonly call: AggregateName;
  readonly value?: Expression;
}
