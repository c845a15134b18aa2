import { UsageError } from '../../engine/errors.ts';
import { batchPositions, keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { fitsKeys, type Id, idAt, keysOfIds } from '../../engine/keys/find-id.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { andThen, executePlan, type LogicalPlan } from '../../engine/stream/logical-plan.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import { type Dataset, requireDataset } from '../dataset.ts';
import { ratedPairsOf } from '../found-columns.ts';
import type { RunOptions } from '../run-session.ts';
import { unratedAsOnes } from '../training/unrated-as-ones.ts';
import type { ServedModel } from './build-index.ts';
import type { RatedItem } from './fold-in-request.ts';
import { checkId } from './request.ts';
import type { DescribedUser } from './served-model.ts';

/** A user, and a data set that contains the user's ratings. */
export interface RatingsOfUser extends Pick<DescribedUser, 'attributes'> {
  readonly user: Id;
  readonly ratings: Dataset;
}

/**
 * Finds the ratings of one user in one pass over a data set, which must have the model's columns. Throws
 * UsageError for a user without ratings.
 */
export async function ratingsOfUser(
  { factors, columns, metadata }: ServedModel,
  { user, ratings }: RatingsOfUser,
  options: RunOptions,
): Promise<RatedItem[]> {
  requireDataset(ratings, 'explain');
  checkId('the field user of explain', user);
  const ctx = ratings.session.context(options);
  const found = await ratedPairsOf(ratings, columns, ctx);
  const rated =
    (metadata.params as { readonly implicitPrefs?: boolean } | undefined)?.implicitPrefs === true
      ? await unratedAsOnes(ratings.withColumnNames(found), found.rating, ctx)
      : ratings.withColumnNames(found);
  const { type } = factors.users;
  const selected = andThen(rated.plan, new SelectRatings({ ...found, ...rated.columns }));
  const [own] = fitsKeys(type, user)
    ? await ratingsOfUsers(selected, keysOfIds([user], type), found.item, ctx)
    : [[]];
  if (own.length === 0)
    throw new UsageError(`there are no ratings of user ${String(user)}`, {
      advice: 'Give the ratings that the user has made',
    });
  return own;
}

/**
 * Finds the ratings of a few users in one pass over selected ratings (rows of SelectRatings). `column`: name
 * of the item column in the source.
 */
export async function ratingsOfUsers(
  selected: LogicalPlan,
  users: KeyColumn,
  column: string,
  ctx: ExecutionContext,
): Promise<Required<RatedItem>[][]> {
  const found = Array.from({ length: keyCount(users) }, (): Required<RatedItem>[] => []);
  const lookup = new KeyLookup(users);
  for await (const batch of await executePlan(selected, ctx)) {
    const codes = batchPositions(lookup, batch, 'user');
    const items = batch.getChild('item');
    const values = batch.getChild('rating');
    if (items === null || values === null) throw new Error('select-ratings gave no column item or rating');
    const keys = keysFromVector(items, column);
    for (const [at, own] of found.entries()) {
      for (let row = codes.indexOf(at); row >= 0; row = codes.indexOf(at, row + 1))
        own.push({ item: idAt(keys, row), rating: Number(values.get(row)) });
    }
  }
  return found;
}
