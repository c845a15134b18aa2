import type { Operator } from '../../../engine/stream/operator.ts';
import { CountRows } from '../count-rows.ts';
import { Filter } from '../filter.ts';
import { Project } from '../project.ts';
import { SortRows } from '../sort/sort-rows.ts';
import type { Rule } from './chain.ts';

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
