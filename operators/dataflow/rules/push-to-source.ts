import { boundsOf } from '../../../engine/expressions/bounds.ts';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { Filter } from '../filter.ts';
import type { Rule } from './chain.ts';

/** A source may leave out what the first filter rules out by its statistics; the filter stays. */
export const pushToSource: Rule = (chain) => {
  const [first] = chain.operators;
  if (!(first instanceof Filter) || chain.source.within === undefined) return chain;
  const bounds = boundsOf(checkPredicate(first.predicate, chain.schema));
  return bounds.length === 0 ? chain : { ...chain, source: chain.source.within(bounds) };
};
