import { boundsOf } from '../../../engine/expressions/bounds.ts';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { Filter } from '../filter.ts';
import type { Rule } from './chain.ts';

/**
 * Lets a source skip rows that the first filter excludes, by statistics and folder names. The filter stays.
 */
export const pushToSource: Rule = (chain) => {
  const [first] = chain.operators;
  if (!(first instanceof Filter) || chain.source.within === undefined) return chain;
  const { predicate } = first;
  const bounds = boundsOf(checkPredicate(predicate, chain.schema));
  return { ...chain, source: chain.source.within(bounds, predicate) };
};
