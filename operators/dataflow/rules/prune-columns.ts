import type { Operator } from '../../../engine/stream/operator.ts';
import { Project } from '../project.ts';
import type { Rule } from './chain.ts';

/** Projections leave out the columns that no operator after them needs, nor the consumer. */
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
  if (wanted === undefined || !(operator instanceof Project)) return operator;
  const { projection } = operator;
  if (projection.kind !== 'select') return operator;
  const columns = projection.columns.filter(({ name }) => wanted.includes(name));
  // Rows are counted by a column.
  return new Project({
    kind: 'select',
    columns: columns.length > 0 ? columns : projection.columns.slice(0, 1),
  });
}
