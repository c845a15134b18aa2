import type { ExecutionContext } from '../../engine/run/context.ts';
import { type ChosenItems, mergeAscending } from '../../operators/serving/choose-items.ts';
import type { Exclusions } from '../../operators/serving/exclusions.ts';
import type { Found } from '../../operators/serving/search.ts';
import type { ItemFilter } from './item-filter.ts';
import { searchIndexed } from './search-indexed.ts';
import { popularSpace, type RequestedModel, sideSpace } from './served-model.ts';

/** Limits of one search for items. */
export interface FoundBy extends Pick<ChosenItems, 'denied' | 'allowed'> {
  readonly exclusions: Exclusions | undefined;
  readonly filter?: ItemFilter | undefined;
  /** Number of lists of the index to search; undefined for an exact search. */
  readonly probes: number | undefined;
}

/** The best items of a user by position; for an unknown user the most popular items. */
export async function findItems(
  served: RequestedModel,
  user: number | undefined,
  n: number,
  { denied, allowed, exclusions, filter, probes }: FoundBy,
  { signal, events }: Pick<ExecutionContext, 'signal' | 'events'>,
): Promise<Found> {
  const { factors, itemCounts, searches } = served;
  const { rank, userFactors } = factors;
  const { name, space } =
    user === undefined ? popularSpace(itemCounts ?? new Uint32Array(0)) : sideSpace(served, 'item');
  const query = user === undefined ? [1] : userFactors.subarray(user * rank, (user + 1) * rank);
  const left =
    exclusions === undefined || user === undefined ? denied : mergeAscending(exclusions.of(user), denied);
  const request = { query, n, left, allowed, mask: filter?.mask };
  const options = { signal, onEvent: events };
  return user === undefined || probes === undefined
    ? searches.search(name, space, request, options)
    : searchIndexed(served, 'recommend', probes, request, options);
}
