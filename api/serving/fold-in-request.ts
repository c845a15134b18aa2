import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { findId, type Id, type IdValues } from '../../engine/keys/find-id.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { chooseItems, mergeAscending } from '../../operators/serving/choose-items.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import type { Found } from '../../operators/serving/search.ts';
import {
  type UserRule,
  type FixedItems,
  gramOfItems,
  type LaterRatings,
  rowOf,
  searchForUser,
  solveUsers,
} from '../../operators/serving/solve-users.ts';
import {
  checkId,
  namedItems,
  recommendToUser,
  type RequestOptions,
  type UserRecommendations,
} from './request.ts';
import {
  type DescribedUser,
  idsOf,
  itemRowsOf,
  type RequestedModel,
  ruleOf,
  searchIndexed,
  sideSpace,
  type UserPrior,
} from './served-model.ts';

/** A rating of one item. Only implicit data may leave out `rating`; it is then 1. */
export interface RatedItem {
  readonly item: Id;
  readonly rating?: number;
}

/**
 * A user who need not be in the model. In a model with attributes of users, the user is drawn to what they
 * predict.
 */
export interface GivenUser extends DescribedUser {
  readonly ratings: readonly RatedItem[];
}

/** The ratings of one user who is not in the model. */
export interface RequestRatings {
  /**
   * Positions of the known items, ascending, and their ratings. If an item is repeated, its last rating
   * counts.
   */
  readonly items: Uint32Array;
  readonly ratings: readonly number[];
  readonly unknownItems: number;
  /** What attributes predict of the user; undefined in a model without attributes of users. */
  readonly prior: UserPrior | undefined;
}

/** Throws UsageError unless it is a list of ratings, and for attributes that the model does not have. */
export function requestRatings(
  { factors, priors }: RequestedModel,
  { implicit }: UserRule,
  { ratings: rated, user, attributes }: GivenUser,
): RequestRatings {
  if (!Array.isArray(rated))
    throw new UsageError(`ratings must be a list such as [{ item: 5, rating: 4 }], got ${shown(rated)}`);
  const values = new Map<number, number>();
  let unknownItems = 0;
  for (const one of rated as readonly unknown[]) {
    if (typeof one !== 'object' || one === null)
      throw new UsageError(`a rating is an object such as { item: 5, rating: 4 }, got ${shown(one)}`);
    const { item, rating = implicit ? 1 : undefined } = one as RatedItem;
    checkId('the field item of a rating', item);
    // Ratings are stored as float32, in which larger numbers would be infinite.
    if (typeof rating !== 'number' || !Number.isFinite(Math.fround(rating)))
      throw new UsageError(
        `the rating of item ${String(item)} must be a finite number, got ${shown(rating)}`,
      );
    const position = findId(factors.items, item);
    if (position < 0) unknownItems++;
    else values.set(position, rating);
  }
  if (user !== undefined) checkId('the field user', user);
  if (attributes !== undefined && priors === undefined)
    throw new UsageError('the attributes of the user are not used: the model has no attributes of users', {
      advice: 'Leave them out, or train it with userAttributes',
    });
  const known = [...values].sort(([left], [right]) => left - right);
  return {
    items: Uint32Array.from(known, ([position]) => position),
    ratings: known.map(([, rating]) => rating),
    unknownItems,
    prior: priors?.of({ user, attributes }),
  };
}

/** The item factors of a model, as the solver takes them. The Gram matrix is computed once for all requests. */
export function fixedItems(served: RequestedModel, rule: UserRule): FixedItems {
  const { factors, itemCounts, searches, remoteItems } = served;
  const weights = { unobserved: rule.implicit?.unobserved ?? 0, counts: itemCounts };
  const make = (ctx: ExecutionContext) =>
    remoteItems?.gram(weights, ctx) ?? gramOfItems(factors, weights, ctx);
  const gram = rule.implicit && ((signal: AbortSignal) => searches.gram(make, signal));
  return { model: itemRowsOf(served), itemCounts, rule, gram };
}

/**
 * The ratings of a request as a block, and the fixed item factors, as Model.foldIn passes them to the solver.
 */
export function givenRow(
  served: RequestedModel,
  rule: UserRule,
  { items, ratings, prior }: RequestRatings,
): readonly [LaterRatings, FixedItems] {
  return [{ block: rowOf(ratings), items, priors: prior?.row }, fixedItems(served, rule)];
}

/** The error for a user whose equations have no finite solution. */
export function unsolved(): UsageError {
  return new UsageError('the equations of these ratings have no finite solution', {
    advice: 'Give ratings on the scale of the training, or a larger regParam',
  });
}

/** See Model.recommend. */
export async function recommendFromRatings(
  served: RequestedModel,
  user: GivenUser,
  n: number,
  options: RequestOptions,
): Promise<UserRecommendations> {
  const { signal, onEvent, exclude, names } = options;
  if (exclude !== undefined)
    throw new UsageError(
      'exclude has no effect for a user who is given by ratings: their items are left out',
      { advice: 'Leave it out, or use deny' },
    );
  const ids = idsOf(served, 'item');
  const rule = ruleOf(served, options.regParam);
  const ratings = requestRatings(served, rule, user);
  const chosen = chooseItems(served.factors.items, options, served.itemCounts);
  const unknownItems = chosen.unknown + ratings.unknownItems;
  const { name, space } = sideSpace(served, 'item');
  const left = mergeAscending(ratings.items, chosen.denied);
  const { searches } = served;
  const probes = served.indexes.probes('recommend', options.index);
  const limits = { n, left, allowed: chosen.allowed, mask: options.filter?.mask };
  const searchFor = async (query: ArrayLike<number>) =>
    probes === undefined
      ? searches.search(name, space, { query, ...limits }, { signal, onEvent })
      : searchIndexed(served, 'recommend', probes, { query, ...limits }, { signal, onEvent });
  const search = async (ctx: ExecutionContext) => {
    if (probes !== undefined) {
      // The index has no factors in the threads' memory, so the row is solved by a task of its own.
      const { values, rows } = await solveUsers(...givenRow(served, rule, ratings), ctx);
      return rows.length === 0 ? undefined : searchFor(values);
    }
    const index = await searches.prepare(name, space);
    return searchForUser(...givenRow(served, rule, ratings), index, limits, ctx);
  };
  const { prior } = ratings;
  if (ratings.items.length === 0 && !prior?.isOwn)
    return { ...(await recommendToUser(served, undefined, n, options)), unknownItems };
  const found =
    ratings.items.length === 0 && prior
      ? await searchFor(prior.row)
      : await searches.compute(search, { signal, onEvent });
  return givenUser(found, n, { ids, names, unknownItems });
}

/** The response for a user given by ratings. Throws UsageError if the user's equations have no solution. */
export function givenUser(
  found: Found | undefined,
  n: number,
  {
    ids,
    names,
    unknownItems,
  }: { readonly ids: IdValues; readonly names: ItemNames | undefined; readonly unknownItems: number },
): UserRecommendations {
  if (found === undefined) throw unsolved();
  const items = namedItems(found, ids, names);
  return { user: null, known: true, items, short: found.positions.length < n, unknownItems };
}
