import { Project, type Projection } from '../project.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import type { Rule } from './chain.ts';
import { substitute, uses } from './substitute.ts';

/** Two projections in a row become one, where no expression would be computed more than once. */
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
  if (isTwice) return undefined;
  const columns = outer.columns.map(({ name, value }) => ({ name, value: substitute(value, inner.columns) }));
  return new Project({ kind: 'select', columns });
}

function selectOf(operator: Operator | undefined): (Projection & { kind: 'select' }) | undefined {
  const projection = operator instanceof Project ? operator.projection : undefined;
  return projection?.kind === 'select' ? projection : undefined;
}
