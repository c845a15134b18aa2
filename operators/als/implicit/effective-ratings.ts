import { type Partition, sharedArray } from '../../../engine/partition.ts';
import { emptyBlock, type RatingBlock } from '../../ratings/rating-block.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { SortedRatings } from '../../ratings/sort-ratings.ts';
import { replaceParts } from '../../ratings/parts-in-files.ts';
import type { Ratings } from '../../ratings/ratings.ts';
import { countPositive } from './count-positive.ts';

export interface EffectiveRatings {
  readonly blocks: SortedRatings;
  /** Number of ratings below 0, and number of ratings equal to 0. */
  readonly negative: number;
  readonly zero: number;
  /** Number of users and of items without a positive rating; their factors are 0. */
  readonly users: number;
  readonly items: number;
}

/**
 * Removes ratings that do not affect implicit training. A rating of 0 has no weight. A user or item without a
 * positive rating has b = 0, so its solution is 0, and a zero row adds nothing to the other side's equations.
 * Its ratings can therefore be removed from both blocks without changing any other row. Returns the blocks
 * unchanged if all ratings are positive.
 */
export async function effectiveRatings(
  blocks: SortedRatings,
  ctx: ExecutionContext,
): Promise<EffectiveRatings> {
  const { byUser, byItem } = blocks;
  const { negative, zero, ...positive } = await countPositive(blocks, ctx);
  const [users, items] = [withoutPositive(positive.users), withoutPositive(positive.items)];
  const count = (without: Uint8Array) => without.reduce((sum, one) => sum + one, 0);
  const counted = { negative, zero, users: count(users), items: count(items) };
  if (negative + zero === 0) return { blocks, ...counted };
  const keep = (ratings: Ratings, rowsOut: Uint8Array, columnsOut: Uint8Array) =>
    replaceParts(
      ratings,
      ({ from, firstColumn, block }) =>
        kept(block, rowsOut.subarray(from, from + block.rows), columnsOut.subarray(firstColumn)),
      ctx,
    );
  return {
    blocks: {
      ...blocks,
      byUser: await keep(byUser, users, items),
      byItem: await keep(byItem, items, users),
    },
    ...counted,
  };
}

/** 1 for each row without a positive rating. */
function withoutPositive(positive: Int32Array): Uint8Array {
  return Uint8Array.from(positive, (count) => (count === 0 ? 1 : 0));
}

function kept(block: RatingBlock, rowsOut: Uint8Array, columnsOut: Uint8Array): RatingBlock {
  const { offsets, indices, values } = block;
  const stays = (row: number, k: number) =>
    values[k] !== 0 && rowsOut[row] === 0 && columnsOut[indices[k]] === 0;
  const lengths = sharedArray(Int32Array, block.rows);
  for (let row = 0; row < block.rows; row++)
    for (let k = offsets[row]; k < offsets[row + 1]; k++) if (stays(row, k)) lengths[row]++;
  const { columns }: Partition = emptyBlock(lengths);
  const target = columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  let next = 0;
  for (let row = 0; row < block.rows; row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      if (!stays(row, k)) continue;
      target.indices[next] = indices[k];
      target.values[next++] = values[k];
    }
  }
  return { ...block, ref: { ...block.ref, version: block.ref.version + 1 }, ratings: next, ...target };
}
