import { type Partition, sharedArray } from '../../../engine/partition.ts';
import { emptyBlock, type RatingBlock } from '../../ratings/rating-block.ts';
import type { RatingBlocks } from '../../ratings/rating-blocks.ts';

export interface EffectiveRatings {
  readonly blocks: RatingBlocks;
  /** Ratings below 0, and of 0. */
  readonly negative: number;
  readonly zero: number;
  /** Rows without a positive rating, whose factors are 0. */
  readonly users: number;
  readonly items: number;
}

/**
 * The ratings that have an effect on implicit training. A rating of 0 has no weight. The solution of a user or item without a positive
 * rating is 0, since its b is, and a zero row adds nothing to those of the other side; so its ratings can be left out of both blocks
 * without a change to any other row. Gives the blocks as they are where all ratings are positive.
 */
export function effectiveRatings(blocks: RatingBlocks): EffectiveRatings {
  const { byUser, byItem } = blocks;
  let [negative, zero] = [0, 0];
  for (let k = 0; k < byUser.values.length; k++) {
    if (byUser.values[k] < 0) negative++;
    else if (byUser.values[k] === 0) zero++;
  }
  const [users, items] = [byUser, byItem].map(withoutPositive);
  const count = (without: Uint8Array) => without.reduce((sum, one) => sum + one, 0);
  const counted = { negative, zero, users: count(users), items: count(items) };
  if (negative + zero === 0) return { blocks, ...counted };
  return { blocks: { ...blocks, byUser: kept(byUser, users, items), byItem: kept(byItem, items, users) }, ...counted };
}

/** 1 for each row that has no positive rating. */
function withoutPositive({ rows, offsets, values }: RatingBlock): Uint8Array {
  return Uint8Array.from({ length: rows }, (_, row) => (values.subarray(offsets[row], offsets[row + 1]).some((value) => value > 0) ? 0 : 1));
}

function kept(block: RatingBlock, rowsOut: Uint8Array, columnsOut: Uint8Array): RatingBlock {
  const { offsets, indices, values } = block;
  const stays = (row: number, k: number) => values[k] !== 0 && rowsOut[row] === 0 && columnsOut[indices[k]] === 0;
  const lengths = sharedArray(Int32Array, block.rows);
  for (let row = 0; row < block.rows; row++) for (let k = offsets[row]; k < offsets[row + 1]; k++) if (stays(row, k)) lengths[row]++;
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
