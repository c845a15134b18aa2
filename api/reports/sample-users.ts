import { CapacityError } from '../../engine/errors.ts';
import { keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { type Id, keysOfIds } from '../../engine/keys/find-id.ts';
import { andThen } from '../../engine/stream/logical-plan.ts';
import { type BadRowPolicy, SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import type { Dataset } from '../dataset.ts';
import { ratedPairsOf } from '../found-columns.ts';
import type { Model } from '../model.ts';
import { isReplayable } from '../run-rows.ts';
import type { RunOptions } from '../run-session.ts';
import { ratingsOfUsers } from '../serving/ratings-of-user.ts';
import type { RequestOptions } from '../serving/request.ts';

/** A user with some of the user's ratings and recommendations. */
export interface SampleUser {
  readonly user: Id;
  /** Number of training ratings. */
  readonly ratings: number;
  /** The highest ratings of the user, best first. */
  readonly rated: readonly { readonly item: Id; readonly rating: number }[];
  /** Items that the user has not rated, best first. */
  readonly recommended: readonly { readonly item: Id; readonly score: number }[];
}

export interface SampleOptions extends RunOptions {
  /** Length of each list. */
  readonly n: number;
  readonly onBadRows: BadRowPolicy;
}

/**
 * One user is sampled at each of these places in the order of users by number of ratings (0: fewest, 1:
 * most).
 */
const PARTS = [0.99, 0.9, 0.5];

/**
 * Chooses users with many, some and few ratings and reads their ratings in one pass over the training
 * ratings. Empty if the source can be read only once, the model has no user counts, or a search of items does
 * not fit in memory.
 */
export async function sampleUsers(
  model: Model,
  ratings: Dataset,
  { n, onBadRows, ...run }: SampleOptions,
): Promise<SampleUser[]> {
  const { userCounts: counts, columns } = model;
  if (counts === undefined || !isReplayable(ratings)) return [];
  const { ids } = model.userArrays;
  const users = sampledPositions(counts).map((position) => ids[position]);
  const column = model.userFactors.getChildAt(0);
  if (column === null) throw new Error('the factors of users have no column of ids');
  const keys = keysOfIds(users, keysFromVector(column, columns.user).type);
  const ctx = ratings.session.context(run);
  const named = await ratedPairsOf(ratings, columns, ctx);
  const found = await ratingsOfUsers(
    andThen(ratings.plan, new SelectRatings(named, onBadRows)),
    keys,
    named.item,
    ctx,
  );
  const samples: SampleUser[] = [];
  for (const [at, user] of users.entries()) {
    const rated = [...new Map(found[at].map((one) => [one.item, one])).values()].sort(
      (a, b) => b.rating - a.rating,
    );
    const recommended = await itemsFor(model, user, n, {
      deny: rated.map(({ item }) => item),
      signal: run.signal,
    });
    if (recommended === undefined) return [];
    samples.push({ user, ratings: rated.length, rated: rated.slice(0, n), recommended });
  }
  return samples;
}

/**
 * The best items of a user. Undefined if the search does not fit in memory: the training should still get its
 * report.
 */
async function itemsFor(
  model: Model,
  user: Id,
  n: number,
  options: RequestOptions,
): Promise<SampleUser['recommended'] | undefined> {
  try {
    return (await model.recommend(user, n, options)).items;
  } catch (error) {
    if (error instanceof CapacityError) return undefined;
    throw error;
  }
}

/**
 * Positions of the users at the places PARTS in the order of their number of ratings, without duplicates. Of
 * users with equal numbers, the first is taken.
 */
function sampledPositions(counts: Uint32Array): number[] {
  const sorted = counts.slice().sort();
  const wanted = PARTS.map((part) => sorted[Math.floor(part * (sorted.length - 1))]);
  const taken = new Set<number>();
  for (const count of wanted) {
    const position = counts.findIndex((own, at) => own === count && !taken.has(at));
    if (position >= 0) taken.add(position);
  }
  return [...taken];
}
