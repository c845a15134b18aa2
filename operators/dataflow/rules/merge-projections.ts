import { Schema } from 'apache-arrow';
import { check, isLiteral } from '../../../engine/expressions/check.ts';
import { depthOf, type Expression, MOST_LEVELS } from '../../../engine/expressions/expression.ts';
import { Project, type Projection } from '../project.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import type { Rule } from './chain.ts';
import { substitute, uses } from './substitute.ts';

const noColumns = new Schema([]);

/** Merges two adjacent projections, if no expression would be computed more than once or be nested too deep. */
export const mergeProjections: Rule = (chain) => {
  const operators: Operator[] = [];
  for (const operator of chain.operators) {
    const merged = mergedInto(operators.at(-1), operator);
    if (merged === undefined) operators.push(operator);
    else operators[operators.length - 1] = merged;
  }
  return { ...chain, operators };
};

function mergedInto(below: Operator | undefined, above: Operator): Project | undefined {
  const [inner, outer] = [selectOf(below), selectOf(above)];
  if (inner === undefined || outer === undefined) return undefined;
  const counts = new Map<string, number>();
  for (const { value } of outer.columns) uses(value, counts);
  const isTwice = inner.columns.some(
    ({ name, value }) => value.kind !== 'column' && value.kind !== 'literal' && (counts.get(name) ?? 0) > 1,
  );
  if (isTwice || levelsOf(inner) + levelsOf(outer) > MOST_LEVELS) return undefined;
  const typed = inner.columns.map(({ name, value }) => ({ name, value: typedLiteral(value) }));
  const columns = outer.columns.map(({ name, value }) => ({
    name,
    value: substitute(value, value.kind === 'column' ? inner.columns : typed),
  }));
  return new Project({ kind: 'select', columns });
}

/** The levels of the deepest column. */
function levelsOf({ columns }: Projection & { kind: 'select' }): number {
  return columns.reduce((most, { value }) => Math.max(most, depthOf(value)), 0);
}

/** Gives a literal its column type explicitly: inside an expression it would adopt another type. */
function typedLiteral(value: Expression): Expression {
  if (!isLiteral(value)) return value;
  const { type } = check(value, noColumns);
  return type === 'null' ? value : { kind: 'cast', value, to: type, onError: 'error' };
}

function selectOf(operator: Operator | undefined): (Projection & { kind: 'select' }) | undefined {
  const projection = operator instanceof Project ? operator.projection : undefined;
  return projection?.kind === 'select' ? projection : undefined;
}
