import { boundsOf } from '../../../engine/expressions/bounds.ts';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { Filter } from '../filter.ts';
import type { Rule } from './chain.ts';

/**
 * Passes the first filter to the source, which then skips files and row groups that cannot match, by folder
 * names and statistics. The filter stays, since other rows may not match either.
 */
export const pushToSource: Rule = (chain) => {
  const [first] = chain.operators;
  if (!(first instanceof Filter) || chain.source.within === undefined) return chain;
  const { predicate } = first;
  const bounds = boundsOf(checkPredicate(predicate, chain.schema));
  return { ...chain, source: chain.source.within(bounds, predicate) };
};
