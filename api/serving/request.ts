import { findId, type Id } from '../../engine/keys/find-id.ts';
import type { IdValues } from '../../engine/keys/id-form.ts';
import { UsageError } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import { chooseItems } from '../../operators/serving/choose-items.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import type { Found } from '../../operators/serving/search.ts';
import { findItems } from './find-items.ts';
import { checkedId, type RequestOptions, UNKNOWN_USER_ADVICE } from './request-options.ts';
import { idsOf, type RequestedModel } from './served-model.ts';
import { nameOf } from './item-name.ts';

/** An item of a response; `name` if the option `names` has one. */
export interface RecommendedItem {
  readonly item: Id;
  readonly score: number;
  readonly name?: string;
}

/** The response to a request for one user. */
export interface UserRecommendations {
  /** The id; null for a user given by ratings. */
  readonly user: Id | null;
  /** True if the model knows the user, or an item that the given ratings name. */
  readonly known: boolean;
  /** Set if the items are not personalized: `popular` are those with the most ratings. */
  readonly fallback?: 'popular';
  /**
   * Best first; ids in the form of the session's option `ids`. `score` is the prediction, for a fallback the
   * number of ratings.
   */
  readonly items: readonly RecommendedItem[];
  /** True if there are fewer than n. */
  readonly short: boolean;
  /** Unknown ids in the lists allow and deny. */
  readonly unknownItems: number;
}

/** See Model.recommend; `user` is undefined if nothing is known of the user. */
export async function recommendToUser(
  served: RequestedModel,
  user: Id | undefined,
  n: number,
  options: RequestOptions,
): Promise<UserRecommendations> {
  const {
    unknownUsers = 'empty',
    exclude,
    filter,
    names,
    index,
    signal = new AbortController().signal,
    onEvent = noEvents,
  } = options;
  const { users, items } = served.factors;
  const ids = { user: idsOf(served, 'user'), item: idsOf(served, 'item') };
  const position = user === undefined ? -1 : findId(users, checkedId('recommend', user));
  const known = position >= 0;
  if (!known && unknownUsers === 'error') throw unknownUser(user);
  const chosen = chooseItems(items, options);
  const fallback = !known && unknownUsers === 'popular' ? ({ fallback: 'popular' } as const) : {};
  const empty = !known && unknownUsers === 'empty';
  // An empty response also requires an open session.
  if (empty) served.session.requestContext({ signal });
  const found = empty
    ? { positions: [], scores: [] }
    : await findItems(
        served,
        known ? position : undefined,
        n,
        { ...chosen, exclusions: exclude, filter, probes: served.indexes.probes('recommend', index) },
        { signal, events: onEvent },
      );
  return {
    user: user === undefined ? null : known ? ids.user.at(position) : ids.user.given(user),
    known,
    ...fallback,
    items: namedItems(found, ids.item, names),
    short: found.positions.length < n,
    unknownItems: chosen.unknown,
  };
}

function unknownUser(user: Id | undefined): UsageError {
  const problem =
    user === undefined
      ? 'the model knows no item that the user rated'
      : `the model has no user ${String(user)}`;
  return new UsageError(problem, { advice: UNKNOWN_USER_ADVICE });
}

/** The found items with their ids and names. */
export function namedItems(
  { positions, scores }: Found,
  ids: IdValues,
  names: ItemNames | undefined,
): RecommendedItem[] {
  return positions.map((position, rank) => ({
    item: ids.at(position),
    score: scores[rank],
    ...nameOf(names, ids.key(position)),
  }));
}
