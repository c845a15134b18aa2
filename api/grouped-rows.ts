import { UsageError } from '../engine/errors.ts';
import { andThen, fromSource, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import type { Aggregation } from '../operators/dataflow/aggregate/functions.ts';
import { type NamedExpression, Project } from '../operators/dataflow/project.ts';
import { GroupRows, Wide } from '../operators/exchange/wide-operators.ts';
import { AggregateColumn, count } from './aggregates.ts';
import { shown } from '../engine/shown.ts';
import { col, Column } from './expressions.ts';

/** Rows grouped by keys, the result of `groupBy`. Immutable. */
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
   * One row for each group, with its keys and aggregates: `agg(count(), mean('rating').as('average'))`. Nulls
   * in a key are equal, as are NaNs, and -0 and 0. Without keys there is exactly one row, even for no input
   * rows.
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

/** Groups a plan's rows. Keys and aggregated values that are expressions are computed as columns first. */
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
