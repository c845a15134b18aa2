import { UsageError } from '../engine/errors.ts';
import { columnsOf, type Expression, type Plain } from '../engine/expressions/expression.ts';
import { shown } from '../engine/format.ts';
import { fromSource, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import type { Aggregation } from '../operators/dataflow/aggregate/aggregate.ts';
import type { NamedExpression } from '../operators/dataflow/project.ts';
import { GroupRows, Wide } from '../operators/exchange/wide-operators.ts';
import { AggregateColumn } from './aggregates.ts';
import { col, type Column, lit, when } from './expressions.ts';
import { hasWindow, isColumn, projected } from './windows.ts';

/** The aggregates' plain form. Throws UsageError for no aggregate, and for something else. */
export function aggregationsOf(aggregates: readonly AggregateColumn[]): Aggregation[] {
  if (aggregates.length === 0)
    throw new UsageError('agg takes one aggregate or more', { advice: "Write agg(count(), sum('plays'))" });
  const stranger = aggregates.find((one) => !(one instanceof AggregateColumn));
  if (stranger !== undefined)
    throw new UsageError(`agg takes aggregates such as mean('rating').as('average'), got ${shown(stranger)}`);
  return aggregates.map((one) => ({ name: one.name, ...one.function }));
}

/** Groups a plan's rows. Keys and aggregated values that are expressions are computed as columns first. */
export function grouped(
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
    !values.some(({ value }) => hasWindow(value) || columnsOf(value).some((name) => name.includes('.')));
  const wide = new GroupRows({ keys: names, aggregations: isPlain ? aggregations : own });
  const input = isPlain ? plan : projected(plan, { kind: 'select', columns: [...keys, ...values] });
  return fromSource(new Wide(wide, [input]));
}

interface Pivot {
  readonly by: Column;
  readonly values: readonly Plain[];
}

/** Column of the pivoted values in the groups by keys and value. */
const PIVOT = 'pivot value';

/** Groups by the keys and the pivoted value; then the aggregates of a group's values become its columns. */
export function pivoted(
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
