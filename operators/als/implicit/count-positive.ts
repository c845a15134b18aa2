import { sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { passOver } from '../../ratings/pass-over.ts';
import { hostForm } from '../../ratings/rating-block.ts';
import type { Ratings, RatingSides } from '../../ratings/ratings.ts';

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
