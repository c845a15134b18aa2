import { UsageError } from '../engine/errors.ts';
import { andThen, fromSource, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import type { Aggregation } from '../operators/dataflow/aggregate/aggregation.ts';
import { type NamedExpression, Project } from '../operators/dataflow/project.ts';
import { GroupRows } from '../operators/exchange/group-rows.ts';
import { Wide } from '../operators/exchange/wide.ts';
import { AggregateColumn, count } from './aggregates.ts';
import { shown } from '../engine/shown.ts';
import { col, Column } from './expressions.ts';

/** Rows that are grouped by keys, as `groupBy` gives them. Immutable. */
export class GroupedRows<Made> {
  readonly #keys: readonly NamedExpression[];
  readonly #plan: LogicalPlan;
  readonly #over: (plan: LogicalPlan) => Made;

  /** @internal */
  constructor(plan: LogicalPlan, keys: readonly (string | Column)[], over: (plan: LogicalPlan) => Made) {
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
   * A row for each group: its keys, then the aggregates: `agg(count(), mean('rating').as('average'))`. Rows
   * with nulls in the same keys are one group, as are NaNs, and -0 and 0. Without keys there is one row, also
   * of no rows.
   */
  agg(...aggregates: readonly AggregateColumn[]): Made {
    if (aggregates.length === 0)
      throw new UsageError('agg takes one aggregate or more', { advice: "Write agg(count(), sum('plays'))" });
    const stranger = aggregates.find((one) => !(one instanceof AggregateColumn));
    if (stranger !== undefined)
      throw new UsageError(
        `agg takes aggregates such as mean('rating').as('average'), got ${shown(stranger)}`,
      );
    const aggregations = aggregates.map(({ name, call, value }) => ({ name, call, ...(value && { value }) }));
    return this.#over(grouped(this.#plan, this.#keys, aggregations));
  }

  /** The number of rows of each group, as a column `count`. */
  count(): Made {
    return this.agg(count());
  }
}

/**
 * The groups of a plan's rows. Keys that are expressions are columns first, as are then the aggregates'
 * values.
 */
function grouped(
  plan: LogicalPlan,
  keys: readonly NamedExpression[],
  aggregations: readonly Aggregation[],
): LogicalPlan {
  const names = keys.map(({ name }) => name);
  const isPlain = keys.every(({ name, value }) => value.kind === 'column' && value.name === name);
  const values = aggregations.flatMap(({ name, value }) => (value ? [{ name, value }] : []));
  const own: Aggregation[] = aggregations.map(({ name, call, value }) => ({
    name,
    call,
    ...(value && { value: { kind: 'column', name } }),
  }));
  const wide = new GroupRows({ keys: names, aggregations: isPlain ? aggregations : own });
  const computed = new Project({ kind: 'select', columns: [...keys, ...values] });
  return fromSource(new Wide(wide, [isPlain ? plan : andThen(plan, computed)]));
}
