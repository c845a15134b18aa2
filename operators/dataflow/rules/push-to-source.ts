import { boundsOf } from '../../../engine/expressions/bounds.ts';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { Filter } from '../filter.ts';
import type { Rule } from './chain.ts';

/** A source may leave out what the first filter rules out by its statistics and folders; the filter stays. */
export const pushToSource: Rule = (chain) => {
  const [first] = chain.operators;
  if (!(first instanceof Filter) || chain.source.within === undefined) return chain;
  const { predicate } = first;
  const bounds = boundsOf(checkPredicate(predicate, chain.schema));
  return { ...chain, source: chain.source.within(bounds, predicate) };
};
