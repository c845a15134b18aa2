import { columnsOf } from '../../../engine/expressions/expression.ts';
import { andThen } from '../../../engine/stream/logical-plan.ts';
import { Wide } from '../../exchange/wide.ts';
import { Filter } from '../filter.ts';
import type { Rule } from './chain.ts';
import { conjunctsOf, filterOf } from './push-filters.ts';

/** Moves conditions to before an exchange where that is allowed, so that fewer rows are exchanged. */
export const pushIntoWide: Rule = (chain) => {
  const { source, operators } = chain;
  const [filter, ...others] = operators;
  if (!(source instanceof Wide) || !(filter instanceof Filter)) return chain;
  const { filterable } = source.operator;
  const conjuncts = conjunctsOf(filter.predicate);
  const isOfInput = (names: readonly string[]) =>
    filterable === 'all' || (names.length > 0 && names.every((name) => filterable.includes(name)));
  const [moved, left] = [true, false].map((wanted) =>
    conjuncts.filter((conjunct) => isOfInput(columnsOf(conjunct)) === wanted),
  );
  if (moved.length === 0) return chain;
  return {
    ...chain,
    source: source.of([andThen(source.inputs[0], filterOf(moved))]),
    operators: left.length === 0 ? others : [filterOf(left), ...others],
  };
};
