import { UsageError } from '../engine/errors.ts';
import type { Expression } from '../engine/expressions/expression.ts';
import { shown } from '../engine/format.ts';
import { type AggregateName, aggregationText } from '../operators/dataflow/aggregate/aggregate.ts';
import { col, Column } from './expressions.ts';

/**
 * An aggregate over the rows of a group, for `groupBy(...).agg`: `sum(col('plays')).as('total')`. Immutable.
 * Nulls are ignored, except by `first`, `last` and `count()`.
 */
export class AggregateColumn {
  readonly call: AggregateName;
  /** The aggregated expression, as plain JSON; absent for `count()`. */
  readonly value?: Expression;
  /** The name of its column in the result. Default: such as `sum(plays)`; for `count()` it is `count`. */
  readonly name: string;

  constructor(call: AggregateName, value: Expression | undefined, name?: string) {
    this.call = call;
    if (value !== undefined) this.value = value;
    this.name = name ?? (value === undefined ? call : aggregationText({ call, value }));
  }

  /** The aggregate under another name: `mean('rating').as('average')`. */
  as(name: string): AggregateColumn {
    if (typeof name !== 'string' || name === '')
      throw new UsageError(`the name of an aggregate must be a text, got ${shown(name)}`);
    return new AggregateColumn(this.call, this.value, name);
  }
  /** Same as `as`. */
  alias(name: string): AggregateColumn {
    return this.as(name);
  }
}

function made(call: AggregateName, value: string | Column): AggregateColumn {
  if (typeof value === 'string') return new AggregateColumn(call, col(value).expression);
  if (value instanceof Column) return new AggregateColumn(call, value.expression);
  throw new UsageError(`${call} takes the name of a column or an expression, got ${shown(value)}`);
}

/** The number of rows, or of values that are not null: `count()`, `count('rating')`. */
export const count = (value?: string | Column): AggregateColumn =>
  value === undefined ? new AggregateColumn('count', undefined) : made('count', value);
/** The number of distinct values that are not null: `countDistinct('user')`. */
export const countDistinct = (value: string | Column): AggregateColumn => made('countDistinct', value);
/**
 * An exact int64 for integers (DataError if it overflows), float64 for others; null without values:
 * `sum('plays')`.
 */
export const sum = (value: string | Column): AggregateColumn => made('sum', value);
/** The mean as float64; null without values: `mean('rating')`. */
export const mean = (value: string | Column): AggregateColumn => made('mean', value);
/** The smallest value; NaN is larger than all numbers: `min('timestamp')`. */
export const min = (value: string | Column): AggregateColumn => made('min', value);
/** The largest value; NaN is larger than all numbers: `max('timestamp')`. */
export const max = (value: string | Column): AggregateColumn => made('max', value);
/**
 * The sample standard deviation (divisor n - 1) as float64; null for fewer than two values:
 * `stddev('rating')`.
 */
export const stddev = (value: string | Column): AggregateColumn => made('stddev', value);
/** The value of the first row in input order; may be null: `first('title')`. */
export const first = (value: string | Column): AggregateColumn => made('first', value);
/** The value of the last row in input order; may be null: `last('rating')`. */
export const last = (value: string | Column): AggregateColumn => made('last', value);
/** All values that are not null as a list, in input order: `collectList('item')`. */
export const collectList = (value: string | Column): AggregateColumn => made('collectList', value);
