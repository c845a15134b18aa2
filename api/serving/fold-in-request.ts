import { UsageError } from '../../engine/errors.ts';
import { findId, type Id } from '../../engine/keys/find-id.ts';
import { weightOf } from '../../operators/als/implicit/rating-weight.ts';
import { chooseItems, mergeAscending } from '../../operators/serving/choose-items.ts';
import { type RowRule, shiftsOf } from '../../operators/serving/fold-in/row-rule.ts';
import { shown } from '../check-options.ts';
import type { RunOptions } from '../session.ts';
import type { RequestOptions } from './recommend-options.ts';
import { namedItems, recommendToUser, type UserRecommendations } from './request.ts';
import { idsOf, ruleOf, type ServedModel, sideSpace } from './served-model.ts';

/** A rating of one item; without `rating`, which only implicit data may leave out, 1. */
export interface RatedItem {
  readonly item: Id;
  readonly rating?: number;
}

/** A user who is not in the model, solved from some ratings. */
export interface FoldedUser {
  /** As the model stores users; empty where there is no known item. */
  readonly features: Float32Array;
  /** Positions of the known items, as they were given, and their ratings. */
  readonly items: readonly number[];
  readonly ratings: readonly number[];
  readonly unknownItems: number;
}

export interface Explained extends FoldedUser {
  /** The part of the score of the item that was asked for that comes from each of `items`. */
  readonly parts: readonly number[];
  readonly itemBias: number;
}

/**
 * Solves one user in a thread for requests, exactly, in float64. `explained`: the position of an item whose
 * score is taken apart.
 */
export async function solveUser(
  served: ServedModel,
  rule: RowRule,
  rated: readonly RatedItem[],
  options: RunOptions & { readonly explained?: number },
): Promise<Explained> {
  const ratings = knownOf(served, rule, rated);
  const none = {
    features: new Float32Array(0),
    items: [],
    ratings: [],
    unknownItems: ratings.unknown,
    parts: [],
    itemBias: 0,
  };
  if (ratings.items.length === 0) return none;
  const positive = ratings.values.filter((value) => value > 0).length;
  const { factors, bias } = shiftsOf(
    rule,
    rule.implicit ? positive : ratings.items.length,
    served.factors.itemFactors.length / served.factors.rank,
  );
  const { implicit } = rule;
  const weighted = implicit
    ? ratings.values.map((value, k) =>
        Math.fround(weightOf(implicit.weight, value, served.itemCounts?.[ratings.items[k]] ?? 0)),
      )
    : ratings.values;
  const weights = weighted.map((value) => (implicit ? implicit.alpha * Math.abs(value) : 1));
  const targets = weighted.map((value) =>
    implicit ? (value > 0 ? implicit.base + implicit.alpha * value : 0) : value - rule.mean,
  );
  const { name, space } = sideSpace(served, 'item');
  const { explained, ...run } = options;
  const params = {
    rank: rule.rank,
    bias: rule.biases,
    items: ratings.items,
    weights,
    targets,
    shift: factors,
    biasShift: bias,
    ...(explained === undefined ? {} : { explained }),
  };
  const { x, parts, itemBias } = await served.searches.solve(name, space, params, implicit?.unobserved, run);
  if (x.length === 0) return none;
  const features = new Float32Array(served.factors.rank);
  features.set(x);
  if (rule.biases) {
    features[rule.rank] += rule.mean;
    features[rule.rank + 1] = 1;
  }
  return {
    features,
    items: ratings.items,
    ratings: ratings.values,
    unknownItems: ratings.unknown,
    parts,
    itemBias,
  };
}

/** The known items, each once (the last rating of one counts), and the number of those that are not known. */
function knownOf({ factors }: ServedModel, { implicit, nonnegative }: RowRule, rated: readonly RatedItem[]) {
  if (!Array.isArray(rated))
    throw new UsageError(`ratings must be a list such as [{ item: 5, rating: 4 }], got ${shown(rated)}`);
  if (nonnegative)
    throw new UsageError('a request cannot fold a user into a model with nonnegative factors', {
      advice: 'Use model.foldIn, which does',
    });
  const values = new Map<number, number>();
  let unknown = 0;
  for (const { item, rating = implicit ? 1 : undefined } of rated) {
    if (typeof rating !== 'number' || !Number.isFinite(rating))
      throw new UsageError(
        `the rating of item ${String(item)} must be a finite number, got ${shown(rating)}`,
      );
    const position = findId(factors.items, item);
    if (position < 0) unknown++;
    else values.set(position, rating);
  }
  return { items: [...values.keys()], values: [...values.values()], unknown };
}

/** See Model.recommend. */
export async function recommendFromRatings(
  served: ServedModel,
  rated: readonly RatedItem[],
  n: number,
  options: RequestOptions,
): Promise<UserRecommendations> {
  const { signal, onEvent, exclude, names } = options;
  if (exclude !== undefined)
    throw new UsageError(
      'exclude does nothing for a user who is given by ratings: their items are left out',
      { advice: 'Leave it out, or use deny' },
    );
  const { items } = served.factors;
  const ids = idsOf(served, 'item');
  const solved = await solveUser(served, ruleOf(served, options.regParam), rated, { signal, onEvent });
  const chosen = chooseItems(items, options);
  const unknownItems = chosen.unknown + solved.unknownItems;
  if (solved.features.length === 0)
    return { ...(await recommendToUser(served, undefined, n, options)), unknownItems };
  const { name, space } = sideSpace(served, 'item');
  const left = mergeAscending(Uint32Array.from(solved.items).sort(), chosen.denied);
  const found = await served.searches.search(
    name,
    space,
    { query: solved.features, n, left, allowed: chosen.allowed },
    { signal, onEvent },
  );
  return {
    user: null,
    known: true,
    items: namedItems(found, ids, names),
    short: found.positions.length < n,
    unknownItems,
  };
}
