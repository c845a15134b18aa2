import { UsageError } from '../../engine/errors.ts';
import { keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { fitsKeys, type Id, idAt } from '../../engine/keys/find-id.ts';
import { keysOfIds } from '../../engine/keys/keys-of-ids.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { andThen, executePlan } from '../../engine/stream/logical-plan.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import type { Dataset } from '../dataset.ts';
import { ratedPairsOf } from '../found-columns.ts';
import { requireDataset } from '../require-dataset.ts';
import type { RunOptions } from '../session.ts';
import { unratedAsOnes } from '../training/unrated-as-ones.ts';
import type { RatedItem } from './fold-in-request.ts';
import type { ServedModel } from './served-model.ts';

/** A user whose ratings are among others in a data set. */
export interface RatingsOfUser {
  readonly user: Id;
  readonly ratings: Dataset;
}

/** The ratings of one user, from one pass over the data set, whose columns are the model's. Throws UsageError for a user without any. */
export async function ratingsOfUser({ factors, columns, metadata }: ServedModel, { user, ratings }: RatingsOfUser, options: RunOptions): Promise<RatedItem[]> {
  requireDataset(ratings, 'explain');
  const ctx = ratings.session.context(options);
  const found = await ratedPairsOf(ratings, columns, ctx);
  const rated = (metadata.params as { readonly implicitPrefs?: boolean } | undefined)?.implicitPrefs === true ? await unratedAsOnes(ratings, found.rating, ctx) : ratings;
  const { type } = factors.users;
  const own: RatedItem[] = [];
  if (fitsKeys(type, user)) {
    const lookup = new KeyLookup(keysOfIds([user], type));
    for await (const batch of await executePlan(andThen(rated.plan, new SelectRatings(found)), ctx)) {
      const codes = lookup.positions(batch, 'user');
      if (!codes.includes(0)) continue;
      const items = batch.getChild('item');
      const values = batch.getChild('rating');
      if (items === null || values === null) throw new Error('select-ratings gave no column item or rating');
      const keys = keysFromVector(items, found.item);
      for (let row = codes.indexOf(0); row >= 0; row = codes.indexOf(0, row + 1)) own.push({ item: idAt(keys, row), rating: Number(values.get(row)) });
    }
  }
  if (own.length === 0) throw new UsageError(`the ratings have none of user ${String(user)}`, { advice: 'Give the ratings that the user has made' });
  return own;
}
