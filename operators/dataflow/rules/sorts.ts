import type { Operator } from '../../../engine/stream/operator.ts';
import { CountRows } from '../count-rows.ts';
import { Filter } from '../filter.ts';
import { Limit } from '../limit.ts';
import { Project } from '../project.ts';
import { SortRows } from '../sort-rows.ts';
import { TopRows } from '../top-rows.ts';
import type { Rule } from './rule.ts';

/**
 * Merges adjacent sorts into one, with the last sort's keys first. Removes sorts of rows that are only
 * counted.
 */
export const joinSorts: Rule = (chain) => {
  const operators: Operator[] = [];
  for (const [i, operator] of chain.operators.entries()) {
    if (!(operator instanceof SortRows)) operators.push(operator);
    else if (!isCounted(chain.operators.slice(i + 1))) {
      const before = operators.at(-1);
      if (before instanceof SortRows) operators.pop();
      const keys = before instanceof SortRows ? [...operator.keys, ...before.keys] : operator.keys;
      const first = keys.filter(({ column }, at) => keys.findIndex((key) => key.column === column) === at);
      operators.push(first.length === operator.keys.length ? operator : new SortRows(first));
    }
  }
  return { ...chain, operators };
};

/** True if `after` leads to a count of the rows without an operator whose result depends on their order. */
function isCounted(after: readonly Operator[]): boolean {
  const end = after.find(
    (operator) =>
      !(operator instanceof Project || operator instanceof Filter || operator instanceof SortRows) &&
      !operator.isRowwise,
  );
  return end instanceof CountRows;
}

/**
 * A limit of more rows stays after projections, since before them the calling thread would compute the
 * columns of its rows alone.
 */
const FEW_ROWS = 1 << 17;

/**
 * Moves small limits before projections, which then compute only those rows. Two adjacent limits become the
 * smaller.
 */
export const pushLimits: Rule = (chain) => {
  const operators: Operator[] = [];
  for (const operator of chain.operators) {
    let at = operators.length;
    if (operator instanceof Limit && operator.rows <= FEW_ROWS)
      while (at > 0 && operators[at - 1] instanceof Project) at--;
    const below = operators[at - 1];
    if (operator instanceof Limit && below instanceof Limit)
      operators[at - 1] = new Limit(Math.min(below.rows, operator.rows));
    else operators.splice(at, 0, operator);
  }
  return { ...chain, operators };
};

/** Sorted rows are selected in memory, without a sort of all rows, only for limits of at most this number. */
const MOST_ROWS = 1 << 20;

/**
 * Replaces a sort followed by a small limit: takes the first rows of each split of the source, then the first
 * rows of these results, instead of sorting all rows.
 */
export const takeTopRows: Rule = (chain) => {
  const operators = chain.operators.flatMap((operator, i) => {
    const [before, after] = [chain.operators[i - 1], chain.operators[i + 1]];
    if (operator instanceof SortRows && isSmall(after)) return [];
    if (!(before instanceof SortRows) || !isSmall(operator)) return [operator];
    return [new TopRows(before.keys, operator.rows, 'split'), new TopRows(before.keys, operator.rows, 'all')];
  });
  return { ...chain, operators };
};

function isSmall(operator: unknown): operator is Limit {
  return operator instanceof Limit && operator.rows <= MOST_ROWS;
}
