import type { Operator } from '../../../engine/stream/operator.ts';
import { Limit } from '../limit.ts';
import { Project } from '../project.ts';
import type { Rule } from './chain.ts';

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
