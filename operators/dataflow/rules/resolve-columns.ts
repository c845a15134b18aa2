import type { Schema } from 'apache-arrow';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Filter } from '../filter.ts';
import { type NamedExpression, Project } from '../project.ts';
import { columnsOf } from '../../../engine/expressions/expression.ts';
import type { Rule } from './chain.ts';

/**
 * Writes each projection as a full list of columns, for which it needs the source's schema. A filter that
 * also drops columns (in a plan that was optimized before) becomes a filter and a projection. The other rules
 * handle only these forms.
 */
export const resolveColumns: Rule = (chain) => {
  let { schema } = chain;
  const operators = joinedAdditions(chain.operators).flatMap((operator) => {
    const resolved = resolvedOf(operator, schema);
    schema = operator.outputSchema(schema);
    return resolved;
  });
  return { ...chain, operators };
};

/**
 * Joins adjacent projections that add columns, as long as none reads a column of an earlier one. A list of all
 * columns for each of thousands of `withColumn` would take quadratic time.
 */
function joinedAdditions(operators: readonly Operator[]): Operator[] {
  const joined: Operator[] = [];
  const added = new Map<string, NamedExpression>();
  const endAdditions = () => {
    if (added.size > 0) joined.push(new Project({ kind: 'with', columns: [...added.values()] }));
    added.clear();
  };
  for (const operator of operators) {
    const projection = operator instanceof Project ? operator.projection : undefined;
    if (projection?.kind !== 'with') {
      endAdditions();
      joined.push(operator);
      continue;
    }
    const { columns } = projection;
    const isFree = columns.every(({ value }) => columnsOf(value).every((name) => !added.has(name)));
    if (!isFree) endAdditions();
    for (const column of columns) added.set(column.name, column);
  }
  endAdditions();
  return joined;
}

function resolvedOf(operator: Operator, schema: Schema): Operator[] {
  if (operator instanceof Project && operator.projection.kind !== 'select')
    return [new Project({ kind: 'select', columns: operator.columns(schema) })];
  if (!(operator instanceof Filter) || operator.keeps === undefined) return [operator];
  const columns = operator
    .outputSchema(schema)
    .fields.map(({ name }) => ({ name, value: { kind: 'column', name } }) as const);
  return [new Filter(operator.predicate), new Project({ kind: 'select', columns })];
}
