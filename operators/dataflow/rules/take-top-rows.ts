import { Limit } from '../limit.ts';
import { SortRows } from '../sort/sort-rows.ts';
import { TopRows } from '../sort/top-rows.ts';
import type { Rule } from './chain.ts';

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
