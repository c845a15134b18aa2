import { sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { passOver } from '../../ratings/pass-over.ts';
import { hostForm } from '../../ratings/rating-block.ts';
import type { Ratings } from '../../ratings/ratings.ts';

export interface PositiveCounts {
  /** Number of ratings above 0 of each row. */
  readonly positive: Int32Array;
  /** Sum of the ratings above 0, in float64. */
  readonly sum: number;
  /** Number of ratings below 0, and number of ratings equal to 0. */
  readonly negative: number;
  readonly zero: number;
}

/** Counts ratings by their sign. The sum does not depend on the number of threads. */
export async function countPositive(ratings: Ratings, ctx: ExecutionContext): Promise<PositiveCounts> {
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
