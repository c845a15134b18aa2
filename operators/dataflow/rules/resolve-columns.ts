import type { Schema } from 'apache-arrow';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Filter } from '../filter.ts';
import { Project } from '../project.ts';
import type { Rule } from './chain.ts';

/**
 * Writes each projection as a full list of columns, for which it needs the source's schema. A filter that
 * also drops columns (in a plan that was optimized before) becomes a filter and a projection. The other rules
 * handle only these forms.
 */
export const resolveColumns: Rule = (chain) => {
  let { schema } = chain;
  const operators = chain.operators.flatMap((operator) => {
    const resolved = resolvedOf(operator, schema);
    schema = operator.outputSchema(schema);
    return resolved;
  });
  return { ...chain, operators };
};

function resolvedOf(operator: Operator, schema: Schema): Operator[] {
  if (operator instanceof Project && operator.projection.kind !== 'select')
    return [new Project({ kind: 'select', columns: operator.columns(schema) })];
  if (!(operator instanceof Filter) || operator.keeps === undefined) return [operator];
  const columns = operator
    .outputSchema(schema)
    .fields.map(({ name }) => ({ name, value: { kind: 'column', name } }) as const);
  return [new Filter(operator.predicate), new Project({ kind: 'select', columns })];
}
