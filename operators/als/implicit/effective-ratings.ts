import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { replaceParts, passOver } from '../../ratings/parts-in-files.ts';
import {
  emptyBlock,
  hostForm,
  type RatingBlock,
  type Ratings,
  type RatingSides,
} from '../../ratings/ratings.ts';
import type { SortedRatings } from '../../ratings/sort-ratings.ts';

/** Numbers of ratings by sign. */
interface SignCounts {
  /** Sum of the ratings above 0, in float64. */
  readonly sum: number;
  /** Number of ratings below 0, and number of ratings equal to 0. */
  readonly negative: number;
  readonly zero: number;
}

export interface PositiveCounts extends SignCounts {
  /** Number of ratings above 0 of each user and of each item. */
  readonly users: Int32Array;
  readonly items: Int32Array;
}

/**
 * Counts ratings by their sign, for both sides. The ratings are only passed over by item if some are not
 * above 0.
 */
export async function countPositive(
  { byUser, byItem }: Pick<RatingSides, 'byUser' | 'byItem'>,
  ctx: ExecutionContext,
): Promise<PositiveCounts> {
  const { positive: users, ...found } = await countSide(byUser, ctx);
  const all = found.negative + found.zero === 0;
  const items = all ? lengthsOf(byItem) : (await countSide(byItem, ctx)).positive;
  return { ...found, users, items };
}

/** Number of ratings of each row. */
function lengthsOf({ rows, parts }: Ratings): Int32Array {
  const lengths = new Int32Array(rows);
  for (const { from, rows: own, offsets } of parts)
    for (let row = 0; row < own; row++) lengths[from + row] += offsets[row + 1] - offsets[row];
  return lengths;
}

interface SideCounts extends SignCounts {
  /** Number of ratings above 0 of each row. */
  readonly positive: Int32Array;
}

/** Counts the ratings of one side. The sum does not depend on the number of threads. */
async function countSide(ratings: Ratings, ctx: ExecutionContext): Promise<SideCounts> {
  const positive = sharedArray(Int32Array, ratings.rows);
  const found = await passOver<'count-positive'>(ratings, ctx, ({ from, block }, give) => {
    const counts = positive.subarray(from, from + block.rows);
    return {
      kernel: 'count-positive',
      inputs: { block: give('block', hostForm(block)) },
      outputs: {
        positive: give('positive', { layout: 'row-counts', rows: block.rows, columns: { counts } }),
      },
      params: {},
    };
  });
  let [sum, negative, zero] = [0, 0, 0];
  for (const values of found) {
    sum += values.sum;
    negative += values.negative;
    zero += values.zero;
  }
  return { positive, sum, negative, zero };
}

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
