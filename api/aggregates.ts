import { UsageError } from '../engine/errors.ts';
import type { Expression } from '../engine/expressions/expression.ts';
import { shown } from '../engine/format.ts';
import {
  type AggregateName,
  type Aggregation,
  aggregationText,
} from '../operators/dataflow/aggregate/aggregate.ts';
import { windowFunctions, type WindowName } from '../operators/dataflow/window/window-functions.ts';
import { col, Column } from './expressions.ts';
import { overWindow, type Window } from './windows.ts';

/**
 * An aggregate over the rows of a group, for `groupBy(...).agg`: `sum(col('plays')).as('total')`. Immutable.
 * Nulls are ignored, except by `first`, `last` and `count()`.
 */
export class AggregateColumn<Name extends string = string, Value = unknown> {
  /** The function and its arguments, as plain JSON. */
  readonly function: Omit<Aggregation, 'name'>;
  /** The name of its column in the result. Default: such as `sum(plays)`; for `count()` it is `count`. */
  readonly name: Name;

  constructor(call: Omit<Aggregation, 'name'>, name?: Name) {
    this.function = call;
    this.name = name ?? ((call.value === undefined ? call.call : aggregationText(call)) as Name);
  }

  /** The aggregate under another name: `mean('rating').as('average')`. */
  as<To extends string>(name: To): AggregateColumn<To, Value> {
    if (typeof name !== 'string' || name === '')
      throw new UsageError(`the name of an aggregate must be a text, got ${shown(name)}`);
    return new AggregateColumn(this.function, name);
  }
  /** Same as `as`. */
  alias<To extends string>(name: To): AggregateColumn<To, Value> {
    return this.as(name);
  }

  /**
   * The aggregate over the rows of a window, as a column: `sum('plays').over({ partitionBy: 'user' })`; count,
   * sum, mean, min, max, first and last. Throws UsageError for the others.
   */
  over(window: Window): Column<string, Value> {
    const { call, value } = this.function;
    if (!isWindowed(call)) throw new UsageError(`${call} cannot be computed over a window`);
    return overWindow({ call, ...(value && { value }) }, window);
  }
}

const isWindowed = (call: string): call is WindowName => Object.hasOwn(windowFunctions, call);

function made<Value>(
  call: AggregateName,
  value: string | Column,
  further: Pick<Aggregation, 'by' | 'p'> = {},
): AggregateColumn<string, Value> {
  return new AggregateColumn({ call, value: argumentOf(call, value), ...further });
}

function argumentOf(call: string, value: string | Column): Expression {
  if (typeof value === 'string') return col(value).expression;
  if (value instanceof Column) return value.expression;
  throw new UsageError(`${call} takes the name of a column or an expression, got ${shown(value)}`);
}

/** The number of rows, or of values that are not null: `count()`, `count('rating')`. */
export function count(): AggregateColumn<'count', bigint>;
export function count(value: string | Column): AggregateColumn<string, bigint>;
export function count(value?: string | Column): AggregateColumn<string, bigint> {
  return value === undefined ? new AggregateColumn({ call: 'count' }) : made('count', value);
}
/** The number of distinct values that are not null: `countDistinct('user')`. */
export const countDistinct = (value: string | Column): AggregateColumn<string, bigint> =>
  made('countDistinct', value);
/**
 * An exact int64 for integers and decimal(38,s) for decimals (DataError beyond them), float64 for floats; null
 * without values: `sum('plays')`. A decimal of more digits than a number has is a text in JavaScript.
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
/** The distinct values that are not null as a list, in the order of their first rows: `collectSet('item')`. */
export const collectSet = <Value = unknown>(
  value: string | Column<string, Value>,
): AggregateColumn<string, NonNullable<Value>[]> => made('collectSet', value);
/** The exact median, as `quantile` with p = 0.5; null without values: `median('price')`. */
export const median = (value: string | Column): AggregateColumn<string, number | null> =>
  made('median', value);
/**
 * The exact quantile of numbers as float64, of decimals in their type; null without values:
 * `quantile('price', 0.9)`. Of n sorted values, numbered from 0, it is the one at p (n - 1), interpolated
 * linearly between two; NaN is the largest.
 * Throws UsageError unless p is from 0 to 1.
 */
export const quantile = (value: string | Column, p: number): AggregateColumn<string, number | null> => {
  if (typeof p !== 'number' || !(p >= 0 && p <= 1))
    throw new UsageError(`the p of quantile must be from 0 to 1, got ${shown(p)}`);
  return made('quantile', value, { p });
};
/**
 * The value of the row with the smallest `by`, the first of them in input order; rows where either is null are
 * ignored: `minBy('price', 'timestamp')`.
 */
export const minBy = <Value = unknown>(
  value: string | Column<string, Value>,
  by: string | Column,
): AggregateColumn<string, Value | null> => made('minBy', value, { by: argumentOf('minBy', by) });
/** The value of the row with the largest `by`, as `minBy`; NaN is the largest number. */
export const maxBy = <Value = unknown>(
  value: string | Column<string, Value>,
  by: string | Column,
): AggregateColumn<string, Value | null> => made('maxBy', value, { by: argumentOf('maxBy', by) });
