import { UsageError } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import { shown } from '../../engine/format.ts';
import { findId, type Id, isId, type IdValues } from '../../engine/keys/find-id.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import {
  chooseItems,
  type ChosenItems,
  type ItemLists,
  mergeAscending,
  Exclusions,
} from '../../operators/serving/choose-items.ts';
import { ItemNames } from '../../operators/serving/item-names.ts';
import type { Found } from '../../operators/serving/search.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import type { RunOptions } from '../run-session.ts';
import {
  checkIndexUse,
  type IndexOption,
  idsOf,
  popularSpace,
  type RequestedModel,
  searchIndexed,
  sideSpace,
} from './served-model.ts';
import { checkValue } from '../../operators/params/param.ts';
import { countParam, recommendParams } from '../option-params.ts';

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
  /** True if the model knows the user, an item that the given ratings name, or an attribute of the given user. */
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
  const chosen = chooseItems(items, options, served.itemCounts);
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

/** Option of methods that return lists of items. */
export interface NameOptions {
  /** Names of items, from `session.readItemNames`, returned in an additional column or field `name`. */
  readonly names?: ItemNames;
}

/**
 * The response for an unknown user: no items (`empty`, the default), the items with the most ratings
 * (`popular`), or an error (`error`).
 */
export type UnknownUsers = 'empty' | 'popular' | 'error';

export const UNKNOWN_USER_ADVICE = "Leave it out, or choose unknownUsers: 'empty' or unknownUsers: 'popular'";

/** Options of `recommend`, for one user. */
export interface RequestOptions extends ItemLists, NameOptions, RunOptions, IndexOption {
  /** Pairs that must not be recommended, from `model.exclusions`. */
  readonly exclude?: Exclusions;
  /** The only items that may be recommended, by attributes: see Model.readItemFilters. */
  readonly filter?: ItemFilter;
  readonly unknownUsers?: UnknownUsers;
  /** λ for a user given by ratings; default: λ of the training. */
  readonly regParam?: number;
}

export const listNames = ['exclude', 'deny', 'allow', 'names', 'index'] as const;

export function checkRequest(options: RequestOptions, served: RequestedModel): void {
  checkOptions(
    'recommend',
    options,
    [...listNames, 'filter', 'regParam', ...runOptionNames],
    '{ deny: [1, 2] }',
    recommendParams,
  );
  const { exclude, filter } = options;
  if (exclude !== undefined && !(exclude instanceof Exclusions))
    throw new UsageError('the option exclude of recommend takes exclusions', {
      advice: 'Read them once with model.exclusions(dataset)',
    });
  if (filter !== undefined && !(filter instanceof ItemFilter && filter.keys === served.factors.items))
    throw new UsageError('the option filter of recommend takes a filter of this model', {
      advice: "Make it with (await model.readItemFilters(path)).where('price < 10')",
    });
  checkItemLists('recommend', options, served);
  if (exclude !== undefined) checkExclusions('recommend', exclude, served);
  checkUnknown(options.unknownUsers, served);
}

export function checkCount(n: number): void {
  checkValue('n', countParam, n);
}

/** Throws UsageError unless it is an id. */
export function checkId(what: string, id: unknown): asserts id is Id {
  if (!isId(id)) throw new UsageError(`${what} takes an id as number, text or bigint, got ${shown(id)}`);
}

/** Returns the id. Throws UsageError for anything else. */
export function checkedId(what: string, id: unknown): Id {
  checkId(what, id);
  return id;
}

/** Throws UsageError unless `ids` is a list of ids. */
export function checkIds(what: string, ids: readonly Id[]): void {
  if (!Array.isArray(ids))
    throw new UsageError(`${what} takes a list of ids, got ${shown(ids)}`, { advice: 'For example [1, 2]' });
  const wrong = ids.find((id) => !isId(id));
  if (wrong !== undefined || ids.includes(undefined as unknown as Id))
    throw new UsageError(`${what} takes ids as numbers, texts or bigints, got ${shown(wrong)}`);
}

/** Throws UsageError for a closed model, and unless the lists and names are of their types. */
export function checkItemLists(
  method: string,
  { deny, allow, coldItems, names, index }: ItemLists & NameOptions & IndexOption,
  { searches, indexes, itemCounts }: RequestedModel,
): void {
  searches.requireOpen();
  checkIndexUse(method, index);
  indexes.probes('recommend', index);
  checkNames(method, names);
  if (coldItems === 'exclude') requireCounts('items without ratings', itemCounts);
  if (deny !== undefined) checkIds(`the option deny of ${method}`, deny);
  if (allow !== undefined) checkIds(`the option allow of ${method}`, allow);
}

/** Throws UsageError unless the exclusions were read for this model. */
export function checkExclusions(method: string, exclude: Exclusions, { factors }: RequestedModel): void {
  if (exclude.users !== factors.users || exclude.items !== factors.items)
    throw new UsageError(`the option exclude of ${method} has exclusions of another model`, {
      advice: 'Read them with the exclusions method of this model',
    });
}

export function checkUnknown(unknownUsers: UnknownUsers = 'empty', { itemCounts }: RequestedModel): void {
  if (unknownUsers === 'popular') requireCounts('popular items', itemCounts);
}

function requireCounts(what: string, itemCounts: Uint32Array | undefined): void {
  if (itemCounts !== undefined) return;
  throw new UsageError(
    `the model does not contain the number of ratings of its items, so ${what} are unknown`,
    { advice: 'Train it again with this release; models of Spark have no such counts' },
  );
}

/** Limits of one search for items. */
interface FoundBy extends Pick<ChosenItems, 'denied' | 'allowed'> {
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

/** The field `name` of an item that has one. */
export function nameOf(names: ItemNames | undefined, item: Id): { readonly name?: string } {
  const name = names?.get(item);
  return name === undefined ? {} : { name };
}

export function checkNames(method: string, names: ItemNames | undefined): void {
  if (names === undefined || names instanceof ItemNames) return;
  throw new UsageError(`the option names of ${method} takes ItemNames, got ${shown(names)}`, {
    advice: 'Read them with session.readItemNames(path), or make them with new ItemNames(entries)',
  });
}

/** The items of a model that meet a condition, for any number of requests to that model. */
export class ItemFilter {
  /** @internal The ids of the model's items. */
  readonly keys: KeyColumn;
  /** @internal 1 for each item that meets the condition, by position. */
  readonly mask: Uint8Array;
  /** Number of items that meet it. */
  readonly count: number;

  constructor(keys: KeyColumn, mask: Uint8Array) {
    this.keys = keys;
    this.mask = mask;
    this.count = mask.reduce((sum, one) => sum + one, 0);
  }
}
