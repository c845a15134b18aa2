import type { Schema } from 'apache-arrow';
import { LEFT_OUT } from '../../../engine/stream/stream.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Filter } from '../filter.ts';
import { Project } from '../project.ts';
import { Sample } from '../sample.ts';
import type { Rule } from './chain.ts';

/**
 * Removes operators without effect: projections to all columns in order, filters that are always true,
 * samples of all rows. Where the source leaves out columns, a projection to all others has an effect: a read
 * of all columns is an error.
 */
export const dropIdle: Rule = (chain) => {
  let { schema } = chain;
  const operators = chain.operators.filter((operator) => {
    if (isIdle(operator, schema)) return false;
    schema = operator.outputSchema(schema);
    return true;
  });
  return { ...chain, operators };
};

function isIdle(operator: Operator, { fields, metadata }: Schema): boolean {
  if (operator instanceof Sample) return operator.fraction >= 1;
  if (operator instanceof Filter)
    return operator.predicate.kind === 'literal' && operator.predicate.value === true;
  if (!(operator instanceof Project) || operator.projection.kind !== 'select') return false;
  if (metadata.has(LEFT_OUT)) return false;
  const { columns } = operator.projection;
  return (
    columns.length === fields.length &&
    columns.every(
      ({ name, value }, i) => value.kind === 'column' && value.name === name && fields[i].name === name,
    )
  );
}
