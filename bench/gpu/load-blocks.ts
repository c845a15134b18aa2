/**
 * Loads a data set from `factorflow generate` as training does: blocks by user and by item, and the test
 * pairs.
 */
import { join } from 'node:path';
import { Session } from '../../api/session.ts';
import { andThen, executePlan } from '../../engine/stream/logical-plan.ts';
import { readRatings } from '../../operators/ratings/reading/read-ratings.ts';
import { collectKnownPairs } from '../../operators/ratings/ids/known-pairs.ts';
import type { RatingBlock } from '../../operators/ratings/rating-block.ts';
import { oneBlock } from '../../operators/ratings/ratings.ts';
import { sortByUser, sortRatings } from '../../operators/ratings/sort-ratings.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';

export interface LoadedBlocks {
  readonly byUser: RatingBlock;
  readonly byItem: RatingBlock;
  readonly test: RatingBlock;
  readonly seconds: number;
}

export async function loadBlocks(folder: string): Promise<LoadedBlocks> {
  const start = performance.now();
  await using session = await Session.create({ device: 'cpu' });
  const ctx = session.context();
  const select = new SelectRatings({ user: 'user', item: 'item', rating: 'rating' });
  const indexed = await readRatings(
    andThen(session.read.parquet(join(folder, 'train')).plan, select),
    {},
    ctx,
  );
  const { users, items } = indexed;
  const { byUser, byItem } = await sortRatings(indexed, { duplicates: 'keep' }, ctx);
  const seconds = (performance.now() - start) / 1000;
  const known = await collectKnownPairs(
    await executePlan(andThen(session.read.parquet(join(folder, 'test')).plan, select), ctx),
    users,
    items,
    ctx,
  );
  const test = await sortByUser(known.indexed, 'keep', ctx);
  return { byUser: oneBlock(byUser), byItem: oneBlock(byItem), test, seconds };
}
