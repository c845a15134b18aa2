import { Project } from '../project.ts';
import type { Rule } from './chain.ts';

/** Writes projections as lists of all their columns, which needs the columns of the source. */
export const resolveColumns: Rule = (chain) => {
  let { schema } = chain;
  const operators = chain.operators.map((operator) => {
    const resolved =
      operator instanceof Project && operator.projection.kind !== 'select'
        ? new Project({ kind: 'select', columns: operator.columns(schema) })
        : operator;
    schema = resolved.outputSchema(schema);
    return resolved;
  });
  return { ...chain, operators };
};
