import { andThen } from '../../../engine/stream/logical-plan.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Filter } from '../filter.ts';
import { Project } from '../project.ts';
import { Union } from '../union.ts';
import type { Rule } from './chain.ts';

/**
 * Moves operators that work row by row from after a union to its inputs. There threads can run them, and a
 * source can skip rows.
 */
export const pushIntoUnion: Rule = (chain) => {
  const { source, schema, operators } = chain;
  if (!(source instanceof Union)) return chain;
  const first = operators.findIndex((operator) => !isOfRows(operator));
  const moved = first < 0 ? operators : operators.slice(0, first);
  if (moved.length === 0) return chain;
  // Inputs may have another order of columns; the result's order and samples depend on it.
  const columns = schema.fields.map(({ name }) => ({ name, value: { kind: 'column', name } }) as const);
  const inOrder = new Project({ kind: 'select', columns });
  return {
    ...chain,
    source: source.of(source.inputs.map((input) => [inOrder, ...moved].reduce(andThen, input))),
    schema: moved.reduce((own, operator) => operator.outputSchema(own), schema),
    operators: operators.slice(moved.length),
  };
};

function isOfRows(operator: Operator): boolean {
  return operator instanceof Filter || operator instanceof Project || operator.isRowwise === true;
}
