import type { Operator } from '../../../engine/stream/operator.ts';
import { columnsOf } from '../../../engine/expressions/expression.ts';
import { Filter } from '../filter.ts';
import { Project } from '../project.ts';
import type { Rule } from './chain.ts';

/** Removes columns from projections and filters that neither later operators nor the consumer need. */
export const pruneColumns: Rule = (chain) => {
  let { wanted } = chain;
  const operators: Operator[] = [];
  for (const operator of chain.operators.toReversed()) {
    const needed = pruned(operator, wanted);
    operators.unshift(needed);
    wanted = needed.requiredColumns(wanted);
  }
  return { ...chain, operators };
};

function pruned(operator: Operator, wanted: readonly string[] | undefined): Operator {
  if (wanted === undefined) return operator;
  if (operator instanceof Filter) {
    const isRead = columnsOf(operator.predicate).every((name) => wanted.includes(name));
    return isRead ? operator : new Filter(operator.predicate, wanted);
  }
  if (!(operator instanceof Project) || operator.projection.kind !== 'select') return operator;
  const { columns: all } = operator.projection;
  const columns = all.filter(({ name }) => wanted.includes(name));
  // If a count needs no column, the first one is computed anyway, so that an error in its expression is still
  // reported.
  const counted =
    columns.length > 0 ? columns : all.slice(0, 1).filter(({ value }) => value.kind !== 'column');
  return new Project({ kind: 'select', columns: counted });
}
