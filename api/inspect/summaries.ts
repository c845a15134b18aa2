import { DataType } from 'apache-arrow';
import { check } from '../../engine/expressions/check.ts';
import type { Expression } from '../../engine/expressions/expression.ts';
import { isNumber, isTime, valueTypeOf } from '../../engine/expressions/types.ts';
import { andThen, fromSource, schemaOf } from '../../engine/stream/logical-plan.ts';
import { plainRows } from '../../engine/values/plain-values.ts';
import type { AggregateName } from '../../operators/dataflow/aggregate/aggregate.ts';
import { Project } from '../../operators/dataflow/project.ts';
import { GroupRows, Wide } from '../../operators/exchange/wide-operators.ts';
import { type PlannedRows, runRows } from '../run-rows.ts';

export interface ColumnSummary {
  readonly column: string;
  readonly type: string;
  /** Number of values that are not null. */
  readonly count: number;
  readonly nulls: number;
  /** For numbers; NaN if a value is NaN. */
  readonly mean?: number;
  /** Sample standard deviation (divisor count - 1). */
  readonly stddev?: number;
  /** For numbers, times (Dates) and text; absent without values. */
  readonly min?: number | string | Date;
  readonly max?: number | string | Date;
}

/** Summaries of columns, by default of all, from the aggregates of one group. */
export async function summarize(
  { plan, session }: PlannedRows,
  names?: readonly string[],
): Promise<ColumnSummary[]> {
  const ctx = session.context();
  const schema = await schemaOf(plan, undefined, ctx.signal);
  const columns = (names ?? schema.fields.map(({ name }) => name)).map((name, i) => {
    const column: Expression = { kind: 'column', name };
    const checked = check(column, schema);
    if (checked.kind !== 'column') throw new Error(`${name} is not a column`);
    const { type } = schema.fields[checked.index];
    const valueType = valueTypeOf(type);
    const isAmount = isNumber(valueType) && !isTime(valueType);
    const isOrdered = isAmount || isTime(valueType) || DataType.isUtf8(type) || DataType.isDictionary(type);
    const calls: AggregateName[] = [
      'count',
      ...(isAmount ? (['mean', 'stddev'] as const) : []),
      ...(isOrdered ? (['min', 'max'] as const) : []),
    ];
    const value: Expression = isAmount
      ? { kind: 'cast', value: column, to: 'float64', onError: 'null' }
      : column;
    return { name, type, isAmount, calls, own: `column ${i}`, value };
  });
  const aggregations = columns.flatMap(({ own, calls }) =>
    calls.map((call) => ({ name: `${own} ${call}`, call, value: { kind: 'column', name: own } as const })),
  );
  const select = new Project({
    kind: 'select',
    columns: columns.map(({ own, value }) => ({ name: own, value })),
  });
  const group = new GroupRows({ keys: [], aggregations: [{ name: 'rows', call: 'count' }, ...aggregations] });
  const grouped = fromSource(new Wide(group, [andThen(plan, select)]));
  let found: Readonly<Record<string, unknown>> = {};
  for await (const batch of await runRows({ plan: grouped, session }, undefined, ctx))
    if (batch.numRows > 0) found = plainRows(batch.schema, batch.data.children)(0);
  return columns.map(({ name, type, isAmount, calls, own }) => {
    const values = calls.map((call) => [call, found[`${own} ${call}`]] as const);
    const count = Number(found[`${own} count`]);
    const known = Object.fromEntries(values.filter(([call, value]) => call !== 'count' && value !== null));
    const deviation = isAmount && count === 1 ? { stddev: 0 } : {};
    return {
      column: name,
      type: String(type),
      count,
      nulls: Number(found.rows) - count,
      ...known,
      ...deviation,
    };
  });
}
