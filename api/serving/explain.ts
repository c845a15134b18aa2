import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { findId, type Id, type IdValues } from '../../engine/keys/find-id.ts';
import { shortestFloat32 } from '../../engine/numbers/half.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import { type UserRule, sharesOf, solveUsers } from '../../operators/serving/solve-users.ts';
import type { RunOptions } from '../run-session.ts';
import {
  givenRow,
  type GivenUser,
  type RatedItem,
  requestRatings,
  type RequestRatings,
  unsolved,
} from './fold-in-request.ts';
import type { RatingsOfUser } from './ratings-of-user.ts';
import { checkId, type NameOptions, nameOf } from './request.ts';
import {
  type AttributeShare,
  idsOf,
  itemRowsOf,
  type RequestedModel,
  ruleOf,
  scoreOf,
} from './served-model.ts';

/** A score and its parts: `base` + `userAttributes` + Σ share of the contributions. */
export interface Explanation {
  readonly item: Id;
  /** The title, if the option `names` has one. */
  readonly name?: string;
  /**
   * False if the model does not know the item, or neither an item nor an attribute of the user: then there is
   * nothing to explain.
   */
  readonly known: boolean;
  /** The score of a user solved from these ratings. */
  readonly score: number;
  /**
   * The score with the user's own factors in the model; absent for a user given by a list of ratings, or
   * unknown to the model.
   */
  readonly modelScore?: number;
  /** μ and the item's bias; 0 without biases. */
  readonly base: number;
  /**
   * The share of what the user's attributes predict, or of a user without attributes; absent if the model has
   * no attributes of users.
   */
  readonly userAttributes?: number;
  /**
   * What each attribute of the item adds to the score by attributes alone, which is the score of an item without
   * ratings; the largest absolute share is first. A value that training did not have adds nothing. Absent if the
   * model has no attributes of items, or not those of this item in memory: a loaded model gets them by
   * `withItems`.
   */
  readonly itemAttributes?: readonly AttributeShare[];
  /**
   * The known items that the user rated, with ratings (the shortest decimals of float32) and contributions;
   * the largest contribution is first.
   */
  readonly contributions: readonly {
    readonly item: Id;
    readonly name?: string;
    readonly rating: number;
    readonly share: number;
  }[];
  readonly unknownItems: number;
}

export interface ExplainOptions extends NameOptions, RunOptions {
  /** λ for the user. Default: λ of the training. */
  readonly regParam?: number;
}

/** Finds the ratings of one user in a data set. */
export type FindRatings = (rated: RatingsOfUser, options: RunOptions) => Promise<RatedItem[]>;

/** See Model.explain. A page has no data sets, and gives lists only. */
export async function explainItem(
  served: RequestedModel,
  rated: readonly RatedItem[] | GivenUser | RatingsOfUser,
  item: Id,
  { regParam, names, ...run }: ExplainOptions,
  find?: FindRatings,
): Promise<Explanation> {
  checkId('explain', item);
  const { items } = served.factors;
  const ids = idsOf(served, 'item');
  const rule = linearRule(served, regParam);
  const given = await givenUser(rated, run, find);
  const rating = requestRatings(served, rule, given);
  const { unknownItems } = rating;
  const position = findId(items, item);
  const own = position < 0 ? ids.given(item) : ids.at(position);
  const asked = { item: own, ...nameOf(names, position < 0 ? own : ids.key(position)) };
  const [row, fixed] = givenRow(served, rule, rating);
  if (position < 0 || (rating.items.length === 0 && !rating.prior?.isOwn))
    return { ...asked, known: false, score: Number.NaN, base: 0, contributions: [], unknownItems };
  const shares = await served.searches.compute((ctx) => sharesOf(row, position, fixed, ctx), run);
  if (shares === undefined) throw unsolved();
  const itemAttributes = await sharesOfItem(served, own, rule, rating, run);
  const base = rule.mean === undefined ? 0 : rule.mean + (await biasOf(served, position, run));
  const contributions = contributionsOf(rating, shares.ratings, ids, names);
  const user = given.user === undefined ? -1 : findId(served.factors.users, given.user);
  return {
    ...asked,
    known: true,
    score: contributions.reduce((sum, { share }) => sum + share, base + shares.prior),
    ...(user < 0 ? {} : { modelScore: scoreOf(served, user, position) }),
    base,
    ...(rating.prior && { userAttributes: shares.prior }),
    ...(itemAttributes && { itemAttributes }),
    contributions,
    unknownItems,
  };
}

/** The shares of the item's attributes in the score of the user, who is solved for it. */
async function sharesOfItem(
  served: RequestedModel,
  item: Id,
  rule: UserRule,
  rating: RequestRatings,
  run: RunOptions,
): Promise<readonly AttributeShare[] | undefined> {
  const { sharesOfAttributes, searches } = served;
  if (sharesOfAttributes === undefined) return undefined;
  if (rating.items.length === 0) return rating.prior && sharesOfAttributes(item, rating.prior.row);
  const solve = (ctx: ExecutionContext) => solveUsers(...givenRow(served, rule, rating), ctx);
  return sharesOfAttributes(item, (await searches.compute(solve, run)).values);
}

async function biasOf(served: RequestedModel, position: number, run: RunOptions): Promise<number> {
  const rows = itemRowsOf(served);
  const { signal } = served.session.requestContext(run);
  const [bias] = await rows.read(Uint32Array.of(position), { first: rows.rank - 1, count: 1 }, signal);
  return bias;
}

/** The rule by which the user is solved. Throws UsageError if scores are not linear in the ratings. */
function linearRule(served: RequestedModel, regParam: number | undefined): UserRule {
  const rule = ruleOf(served, regParam);
  if (!rule.nonnegative) return rule;
  throw new UsageError(
    'scores of a model with nonnegative factors cannot be explained: they are not linear in the ratings',
    { advice: 'Train a model without nonnegative' },
  );
}

async function givenUser(
  rated: readonly RatedItem[] | GivenUser | RatingsOfUser,
  run: RunOptions,
  find: FindRatings | undefined,
): Promise<GivenUser> {
  const isData = ({ ratings }: GivenUser | RatingsOfUser): boolean => !Array.isArray(ratings);
  if (Array.isArray(rated)) return { ratings: rated as readonly RatedItem[] };
  const user = rated as GivenUser | RatingsOfUser;
  if (typeof user !== 'object' || user === null || (isData(user) && find === undefined))
    throw new UsageError(`explain takes a list of ratings, or { user, ratings }, got ${shown(rated)}`);
  return isData(user)
    ? { ...user, ratings: (await find?.(user as RatingsOfUser, run)) ?? [] }
    : (user as GivenUser);
}

/** The largest share first. */
function contributionsOf(
  { items, ratings }: RequestRatings,
  shares: readonly number[],
  ids: IdValues,
  names: ItemNames | undefined,
): Explanation['contributions'] {
  return shares
    .map((share, k) => ({
      item: ids.at(items[k]),
      ...nameOf(names, ids.key(items[k])),
      rating: shortestFloat32(ratings[k]),
      share,
    }))
    .sort((left, right) => right.share - left.share);
}
