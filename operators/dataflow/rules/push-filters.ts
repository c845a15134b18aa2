import { call, columnsOf, type Expression } from '../../../engine/expressions/expression.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Filter } from '../filter.ts';
import { Project } from '../project.ts';
import type { Rule } from './chain.ts';
import { substitute } from './substitute.ts';

/**
 * Filters go before operators that don't change what they look at, so that fewer rows go through those, and
 * before the source's side a source may leave out what they rule out. Filters in a row become one.
 */
export const pushFilters: Rule = (chain) => {
  const operators: Operator[] = [];
  for (const operator of chain.operators) {
    if (operator instanceof Filter) insert(operators, conjunctsOf(operator.predicate));
    else operators.push(operator);
  }
  return { ...chain, operators };
};

/** The parts of a predicate, all of which must be true. */
export function conjunctsOf(predicate: Expression): Expression[] {
  return predicate.kind === 'call' && predicate.name === 'and'
    ? predicate.args.flatMap(conjunctsOf)
    : [predicate];
}

/** Puts each conjunct as near to the source as it can go. */
function insert(operators: Operator[], conjuncts: readonly Expression[]): void {
  for (let at = operators.length, left = conjuncts; left.length > 0; at--) {
    const below = at > 0 ? operators[at - 1] : undefined;
    const passed = left.map((conjunct) => below && before(conjunct, below));
    const stays = left.filter((_, i) => passed[i] === undefined);
    left = passed.filter((conjunct) => conjunct !== undefined);
    if (stays.length === 0) continue;
    if (below instanceof Filter) operators[at - 1] = filterOf([...conjunctsOf(below.predicate), ...stays]);
    else operators.splice(at, 0, filterOf(stays));
  }
}

function filterOf([first, ...others]: readonly Expression[]): Filter {
  return new Filter(others.reduce((all, one) => call('and', all, one), first));
}

/** The conjunct before an operator; undefined where it must stay after it. */
function before(conjunct: Expression, operator: Operator): Expression | undefined {
  if (operator.isRowwise) return conjunct;
  if (!(operator instanceof Project) || operator.projection.kind !== 'select') return undefined;
  const { columns } = operator.projection;
  const names = columnsOf(conjunct);
  // What is computed would be computed twice.
  const isPlain = names.every((name) => columns.find((one) => one.name === name)?.value.kind === 'column');
  return isPlain ? substitute(conjunct, columns) : undefined;
}
