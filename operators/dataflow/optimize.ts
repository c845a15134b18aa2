import {
  andThen,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  schemaOf,
  sourceRequest,
} from '../../engine/stream/logical-plan.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { Chain, Rule } from './rules/rule.ts';
import {
  dropIdle,
  mergeProjections,
  pruneAggregates,
  pruneColumns,
  resolveColumns,
} from './rules/projections.ts';
import { joinSorts, pushLimits, takeTopRows } from './rules/sorts.ts';
import { pushFilters, pushIntoJoin, pushIntoUnion, pushIntoWide, pushToSource } from './rules/filters.ts';

/** Rules by name (as `explain` prints them), in the order of application. */
export const rules: Readonly<Record<string, Rule>> = {
  'resolve columns': resolveColumns,
  'push filters': pushFilters,
  'push into joins': pushIntoJoin,
  'join sorts': joinSorts,
  'push limits': pushLimits,
  'take top rows': takeTopRows,
  'merge projections': mergeProjections,
  'prune columns': pruneColumns,
  'drop what does nothing': dropIdle,
  'push into unions': pushIntoUnion,
  'push into exchanges': pushIntoWide,
  'prune aggregates': pruneAggregates,
  'push bounds to the source': pushToSource,
};

/** The columns and the types of values that the consumer of a plan needs. */
export interface Consumer {
  /** Columns that it needs; default: all. */
  readonly columns?: readonly string[];
  readonly needs?: ValueNeeds;
}

/** A cheaper plan with the same rows. Reads the source's metadata if the plan has operators. */
export async function optimize(
  plan: LogicalPlan,
  { columns, needs }: Consumer = {},
  signal?: AbortSignal,
): Promise<LogicalPlan> {
  const operators = operatorsOf(plan);
  if (operators.length === 0) return plan;
  const source = rootSource(plan);
  const request = sourceRequest(plan, columns, needs);
  const schema = await schemaOf(fromSource(source), request.needs, signal);
  const first: Chain = { source, schema, operators, ...(columns && { wanted: columns }) };
  const chain = Object.values(rules).reduce((own, rule) => rule(own), first);
  return chain.operators.reduce(andThen, fromSource(chain.source));
}
