import { UsageError } from '../engine/errors.ts';
import type { Expression } from '../engine/expressions/expression.ts';
import { shown } from '../engine/format.ts';
import { type AggregateName, aggregationText } from '../operators/dataflow/aggregate/aggregate.ts';
import { col, Column } from './expressions.ts';
import { type Window, WindowColumn } from './windows.ts';

/**
 * An aggregate over the rows of a group, for `groupBy(...).agg`: `sum(col('plays')).as('total')`. Immutable.
 * Nulls are ignored, except by `first`, `last` and `count()`.
 */
export class AggregateColumn<Name extends string = string, Value = unknown> {
  readonly call: AggregateName;
  /** The aggregated expression, as plain JSON; absent for `count()`. */
  readonly value?: Expression;
  /** The name of its column in the result. Default: such as `sum(plays)`; for `count()` it is `count`. */
  readonly name: Name;

  constructor(call: AggregateName, value: Expression | undefined, name?: Name) {
    this.call = call;
    if (value !== undefined) this.value = value;
    this.name = name ?? ((value === undefined ? call : aggregationText({ call, value })) as Name);
  }

  /** The aggregate under another name: `mean('rating').as('average')`. */
  as<To extends string>(name: To): AggregateColumn<To, Value> {
    if (typeof name !== 'string' || name === '')
      throw new UsageError(`the name of an aggregate must be a text, got ${shown(name)}`);
    return new AggregateColumn(this.call, this.value, name);
  }
  /** Same as `as`. */
  alias<To extends string>(name: To): AggregateColumn<To, Value> {
    return this.as(name);
  }

  /**
   * The aggregate over the rows of a window, for `withColumn`: `sum('plays').over({ partitionBy: 'user' })`.
   * Throws UsageError for countDistinct, stddev and collectList.
   */
  over(window: Window): WindowColumn {
    const { call, value } = this;
    if (call === 'countDistinct' || call === 'stddev' || call === 'collectList')
      throw new UsageError(`${call} cannot be computed over a window`);
    return new WindowColumn({ call, ...(value && { value }) }, window);
  }
}

function made<Value>(call: AggregateName, value: string | Column): AggregateColumn<string, Value> {
  if (typeof value === 'string') return new AggregateColumn(call, col(value).expression);
  if (value instanceof Column) return new AggregateColumn(call, value.expression);
  throw new UsageError(`${call} takes the name of a column or an expression, got ${shown(value)}`);
}

/** The number of rows, or of values that are not null: `count()`, `count('rating')`. */
export function count(): AggregateColumn<'count', bigint>;
export function count(value: string | Column): AggregateColumn<string, bigint>;
export function count(value?: string | Column): AggregateColumn<string, bigint> {
  return value === undefined ? new AggregateColumn('count', undefined) : made('count', value);
}
/** The number of distinct values that are not null: `countDistinct('user')`. */
export const countDistinct = (value: string | Column): AggregateColumn<string, bigint> =>
  made('countDistinct', value);
/**
 * An exact int64 for integers (DataError if it overflows), float64 for others; null without values:
 * `sum('plays')`.
 */
export const sum = (value: string | Column): AggregateColumn<string, number | bigint | null> =>
  made('sum', value);
/** The mean as float64; null without values: `mean('rating')`. */
export const mean = (value: string | Column): AggregateColumn<string, number | null> => made('mean', value);
/** The smallest value; NaN is larger than all numbers: `min('timestamp')`. */
export const min = <Value = unknown>(
  value: string | Column<string, Value>,
): AggregateColumn<string, Value | null> => made('min', value);
/** The largest value; NaN is larger than all numbers: `max('timestamp')`. */
export const max = <Value = unknown>(
  value: string | Column<string, Value>,
): AggregateColumn<string, Value | null> => made('max', value);
/**
 * The sample standard deviation (divisor n - 1) as float64; null for fewer than two values:
 * `stddev('rating')`.
 */
export const stddev = (value: string | Column): AggregateColumn<string, number | null> =>
  made('stddev', value);
/** The value of the first row in input order; may be null: `first('title')`. */
export const first = <Value = unknown>(
  value: string | Column<string, Value>,
): AggregateColumn<string, Value | null> => made('first', value);
/** The value of the last row in input order; may be null: `last('rating')`. */
export const last = <Value = unknown>(
  value: string | Column<string, Value>,
): AggregateColumn<string, Value | null> => made('last', value);
/** All values that are not null as a list, in input order: `collectList('item')`. */
export const collectList = <Value = unknown>(
  value: string | Column<string, Value>,
): AggregateColumn<string, NonNullable<Value>[]> => made('collectList', value);
