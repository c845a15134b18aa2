import type { Schema } from 'apache-arrow';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { call, columnsOf, type Expression } from '../../../engine/expressions/expression.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Filter } from '../filter.ts';
import { Project } from '../project.ts';
import { SortRows } from '../sort/sort-rows.ts';
import type { Rule } from './chain.ts';
import { substitute } from './substitute.ts';

/**
 * Moves filters before operators that do not change the columns they use, so that fewer rows reach those
 * operators. Filters directly after a source are also given to the source, so that it can skip splits.
 * Adjacent filters become one. A condition that may fail is never evaluated on rows that an earlier operator
 * or condition removes.
 */
export const pushFilters: Rule = (chain) => {
  let { schema } = chain;
  const operators: Operator[] = [];
  for (const operator of chain.operators) {
    if (!(operator instanceof Filter)) operators.push(operator);
    else insert(operators, conditionsOf(joined(operators, operator), schema));
    schema = operator.outputSchema(schema);
  }
  return { ...chain, operators };
};

/** The conjuncts of a predicate. */
export function conjunctsOf(predicate: Expression): Expression[] {
  return predicate.kind === 'call' && predicate.name === 'and'
    ? predicate.args.flatMap(conjunctsOf)
    : [predicate];
}

/**
 * Conditions of a filter, split at each `and`. If the operator before it is a filter, that one is removed
 * from the list and its conditions come first.
 */
function joined(operators: Operator[], { predicate }: Filter): Expression[] {
  const last = operators.at(-1);
  if (!(last instanceof Filter)) return conjunctsOf(predicate);
  operators.pop();
  return [...conjunctsOf(last.predicate), ...conjunctsOf(predicate)];
}

interface Condition {
  readonly expression: Expression;
  readonly mayFail: boolean;
}

function conditionsOf(conjuncts: readonly Expression[], schema: Schema): Condition[] {
  return conjuncts.map((expression) => ({
    expression,
    mayFail: checkPredicate(expression, schema).mayFail,
  }));
}

/** Inserts each condition as near to the source as it may move. */
function insert(operators: Operator[], conditions: readonly Condition[]): void {
  for (let at = operators.length, left = conditions; left.length > 0; at--) {
    const below = at > 0 ? operators[at - 1] : undefined;
    const passed: Condition[] = [];
    const stays: Expression[] = [];
    for (const { expression, mayFail } of left) {
      const isFree = !mayFail || (stays.length === 0 && !below?.isRowwise);
      const earlier = isFree && below ? before(expression, below) : undefined;
      if (earlier === undefined) stays.push(expression);
      else passed.push({ expression: earlier, mayFail });
    }
    left = passed;
    if (stays.length === 0) continue;
    if (below instanceof Filter) operators[at - 1] = filterOf([...conjunctsOf(below.predicate), ...stays]);
    else operators.splice(at, 0, filterOf(stays));
  }
}

/** A filter by the conjunction of some conditions. */
export function filterOf([first, ...others]: readonly Expression[]): Filter {
  return new Filter(others.reduce((all, one) => call('and', all, one), first));
}

/**
 * The condition rewritten so that it can run before an operator; undefined if it must stay after the
 * operator.
 */
function before(conjunct: Expression, operator: Operator): Expression | undefined {
  if (operator.isRowwise || operator instanceof SortRows) return conjunct;
  if (!(operator instanceof Project) || operator.projection.kind !== 'select') return undefined;
  const { columns } = operator.projection;
  const names = columnsOf(conjunct);
  // Otherwise a computed column would be computed twice.
  const isPlain = names.every((name) => columns.find((one) => one.name === name)?.value.kind === 'column');
  return isPlain ? substitute(conjunct, columns) : undefined;
}
