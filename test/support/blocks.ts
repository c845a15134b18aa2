import type { ExecutionContext } from '../../engine/run/context.ts';
import type { IndexedRatings } from '../../operators/ratings/ids/number-ids.ts';
import { oneBlock } from '../../operators/ratings/ratings.ts';
import { sortRatings } from '../../operators/ratings/sort-ratings.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';

/** Ratings sorted by both sides, as one block each. */
export async function sortedBlocks(
  indexed: IndexedRatings,
  duplicates: DuplicatePolicy,
  ctx: ExecutionContext,
) {
  const sides = await sortRatings(indexed, { duplicates }, ctx);
  return {
    byUser: oneBlock(sides.byUser),
    byItem: oneBlock(sides.byItem),
    duplicates: sides.duplicates,
  };
}
