import { UsageError } from '../engine/errors.ts';
import { type ColumnName, columnsOf, type Expression, type Plain } from '../engine/expressions/expression.ts';
import { formatCount, shown } from '../engine/format.ts';
import { andThen, fromSource, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import type { Aggregation } from '../operators/dataflow/aggregate/aggregate.ts';
import { type NamedExpression, Project } from '../operators/dataflow/project.ts';
import { GroupRows, Wide } from '../operators/exchange/wide-operators.ts';
import { AggregateColumn, count } from './aggregates.ts';
import type { Dataset } from './dataset.ts';
import { col, Column, lit, when } from './expressions.ts';
import type { Aggregated, AnyRow, With } from './row-types.ts';

/** Most values that a pivot finds by itself. */
const MOST_FOUND = 1000;

/** Groups whose aggregates become a column for each value of a column, the result of `pivot`. */
export interface PivotedRows<Result> {
  agg(...aggregates: readonly AggregateColumn[]): Result;
}

/** Rows grouped by keys, the result of `groupBy`. Immutable. */
export class GroupedRows<Keys extends object> {
  readonly #keys: readonly NamedExpression[];
  readonly #plan: LogicalPlan;
  readonly #over: <Made extends object>(plan: LogicalPlan) => Dataset<Made>;

  /** @internal */
  constructor(
    plan: LogicalPlan,
    keys: readonly (string | Column)[],
    over: <Made extends object>(plan: LogicalPlan) => Dataset<Made>,
  ) {
    this.#plan = plan;
    this.#over = over;
    this.#keys = keys.map((key) => {
      if (typeof key === 'string') return { name: key, value: col(key).expression };
      if (key instanceof Column) return { name: key.name ?? key.toString(), value: key.expression };
      throw new UsageError(`groupBy takes names and columns, got ${shown(key)}`, {
        ...(Array.isArray(key) && { advice: "Write groupBy('user', 'item')" }),
      });
    });
    const names = this.#keys.map(({ name }) => name);
    const twice = names.find((name, i) => names.indexOf(name) < i);
    if (twice !== undefined) throw new UsageError(`groupBy: the key "${twice}" is named twice`);
  }

  /**
   * One row for each group, with its keys and aggregates: `agg(count(), mean('rating').as('average'))`. Nulls
   * in a key are equal, as are NaNs, and -0 and 0. Without keys there is exactly one row, even for no input
   * rows.
   */
  agg<const Columns extends readonly AggregateColumn[]>(
    ...aggregates: Columns
  ): Dataset<With<Keys, Aggregated<Columns[number]>>> {
    return this.#over(grouped(this.#plan, this.#keys, aggregationsOf(aggregates)));
  }

  /**
   * A column for each of the values of a column, with the aggregates of a group's rows that have the value:
   * `groupBy('user').pivot('kind', ['buy', 'view']).agg(count())` has the columns user, buy and view; of
   * several aggregates `buy_count`, ... A group without a row of the value has null. Without `values`, a first
   * pass over the rows finds them, in ascending order, and `agg` gives a promise, which throws UsageError for
   * more than 1,000.
   */
  pivot(column: string | Column): PivotedRows<Promise<Dataset>>;
  pivot(column: string | Column, values: readonly Plain[]): PivotedRows<Dataset>;
  pivot(column: string | Column, values?: readonly Plain[]): PivotedRows<Promise<Dataset> | Dataset> {
    if (typeof column !== 'string' && !(column instanceof Column))
      throw new UsageError(`pivot takes the name of a column or an expression, got ${shown(column)}`);
    const by = typeof column === 'string' ? col(column) : column;
    if (values !== undefined && (!Array.isArray(values) || values.length === 0))
      throw new UsageError(`the values of pivot must be a list of one or more, got ${shown(values)}`);
    const over = (from: Column, list: readonly Plain[], aggregates: readonly AggregateColumn[]) =>
      this.#over<AnyRow>(
        pivoted(this.#plan, this.#keys, { by: from, values: list }, aggregationsOf(aggregates)),
      );
    return {
      agg: (...aggregates) => {
        if (values !== undefined) return over(by, values, aggregates);
        return this.#valuesOf(by).then((found) => over(by.cast('utf8'), found, aggregates));
      },
    };
  }

  /** The distinct values of an expression as texts, in ascending order. */
  async #valuesOf(by: Column): Promise<(string | null)[]> {
    const distinct = this.#over(this.#plan).select(by.as('value')).distinct().orderBy('value');
    const texts = distinct.limit(MOST_FOUND + 1).select(col('value').cast('utf8').as('value'));
    const found = (await texts.toArray()) as { value: string | null }[];
    if (found.length <= MOST_FOUND) return found.map(({ value }) => value);
    throw new UsageError(
      `pivot by ${by.toString()} finds more than ${formatCount(MOST_FOUND)} values, each a column of the result`,
      { advice: "Give the values: pivot('kind', ['buy', 'view'])" },
    );
  }

  /** The number of rows of each group, as a column `count`. */
  count(): Dataset<With<Keys, { count: bigint }>> {
    return this.agg(count());
  }
}

/** The aggregates' plain form. Throws UsageError for no aggregate, and for something else. */
function aggregationsOf(aggregates: readonly AggregateColumn[]): Aggregation[] {
  if (aggregates.length === 0)
    throw new UsageError('agg takes one aggregate or more', { advice: "Write agg(count(), sum('plays'))" });
  const stranger = aggregates.find((one) => !(one instanceof AggregateColumn));
  if (stranger !== undefined)
    throw new UsageError(`agg takes aggregates such as mean('rating').as('average'), got ${shown(stranger)}`);
  return aggregates.map((one) => ({ name: one.name, ...one.function }));
}

/** Groups a plan's rows. Keys and aggregated values that are expressions are computed as columns first. */
function grouped(
  plan: LogicalPlan,
  keys: readonly NamedExpression[],
  aggregations: readonly Aggregation[],
): LogicalPlan {
  const names = keys.map(({ name }) => name);
  const values: NamedExpression[] = [];
  const computed = (name: string, value: Expression): Expression => {
    values.push({ name, value });
    return { kind: 'column', name };
  };
  const own: Aggregation[] = aggregations.map((one) => ({
    ...one,
    ...(one.value && { value: computed(one.name, one.value) }),
    ...(one.by && { by: computed(`${one.name}#by`, one.by) }),
  }));
  // A name with a point may be a field of a struct, which a projection reads.
  const isPlain =
    keys.every(({ name, value }) => isColumn(value) && value.name === name) &&
    !values.some(({ value }) => columnsOf(value).some((name) => name.includes('.')));
  const wide = new GroupRows({ keys: names, aggregations: isPlain ? aggregations : own });
  const select = new Project({ kind: 'select', columns: [...keys, ...values] });
  return fromSource(new Wide(wide, [isPlain ? plan : andThen(plan, select)]));
}

/** True for a column by its name, without a point, which may be that of a struct's field. */
export function isColumn(value: Expression): value is ColumnName {
  return value.kind === 'column' && !value.name.includes('.');
}

interface Pivot {
  readonly by: Column;
  readonly values: readonly Plain[];
}

/** Column of the pivoted values in the groups by keys and value. */
const PIVOT = 'pivot value';

/** Groups by the keys and the pivoted value; then the aggregates of a group's values become its columns. */
function pivoted(
  plan: LogicalPlan,
  keys: readonly NamedExpression[],
  { by, values }: Pivot,
  aggregations: readonly Aggregation[],
): LogicalPlan {
  const each = aggregations.map((one, i) => ({ ...one, name: `pivot aggregate ${i + 1}` }));
  const groups = grouped(plan, [...keys, { name: PIVOT, value: by.expression }], each);
  const columns = values.flatMap((value) => {
    const isValue = value === null ? col(PIVOT).isNull() : col(PIVOT).eq(lit(value));
    return aggregations.map(({ name }, i): Aggregation => ({
      name: aggregations.length === 1 ? `${value}` : `${value}_${name}`,
      call: 'firstPresent',
      value: when(isValue, col(each[i].name)).expression,
    }));
  });
  const named = keys.map(({ name }) => ({ name, value: { kind: 'column', name } as const }));
  return grouped(groups, named, columns);
}
