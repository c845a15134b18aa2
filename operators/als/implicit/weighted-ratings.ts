import { type ValueWeight, weightOf } from '../../../engine/numbers/value-weight.ts';
import { mapValues } from '../../../engine/numbers/value-index.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { passOverBlock } from '../../ratings/pass-over.ts';
import { hostForm, type RatingBlock } from '../../ratings/rating-block.ts';
import { replaceParts } from '../../ratings/parts-in-files.ts';
import type { Ratings } from '../../ratings/ratings.ts';

/**
 * Replaces sorted ratings by their weights. `counts`: number of ratings of each item. `keeps`: true if the
 * ratings are still needed, so that the weights get new memory; otherwise weights overwrite the ratings.
 * Ratings in files are written again.
 */
export function weightedRatings(
  { ratings, rows }: { readonly ratings: Ratings; readonly rows: 'users' | 'items' },
  weight: ValueWeight,
  { counts, keeps }: { readonly counts: Int32Array | Uint32Array; readonly keeps: boolean },
  ctx: ExecutionContext,
): Promise<Ratings> {
  return replaceParts(
    ratings,
    async (part) => {
      const { block, from, firstColumn } = part;
      const weights = keeps ? sharedArray(Float32Array, block.values.length) : block.values;
      const itemCounts = counts.subarray(rows === 'items' ? from : firstColumn);
      await passOverBlock<'weigh-ratings'>(part, ctx, (_, give) => ({
        kernel: 'weigh-ratings',
        inputs: {
          block: give('block', hostForm(block)),
          itemCounts: give('itemCounts', itemCountsOf(itemCounts)),
        },
        outputs: {
          weights: give('weights', { layout: 'weights', rows: block.rows, columns: { values: weights } }),
        },
        params: { ...weight, rows },
      }));
      return withWeights(block, weights);
    },
    ctx,
  );
}

/** The number of ratings of each item, as an input of tasks. */
export function itemCountsOf(counts: Int32Array | Uint32Array): Partition {
  return { layout: 'item-counts', rows: counts.length, columns: { counts } };
}

/**
 * Replaces the ratings of one block by their weights, in place. `countAt`: the number of ratings of a
 * rating's item, by the rating's column in the block.
 */
export function weighBlock(
  { offsets, indices, values }: RatingBlock,
  weight: ValueWeight,
  countAt: (column: number) => number,
): void {
  if (weight.form !== 'bm25') mapValues(values, values, (rating) => weightOf(weight, rating, 1));
  else
    for (let k = offsets[0]; k < offsets[offsets.length - 1]; k++)
      values[k] = weightOf(weight, values[k], countAt(indices[k]));
}

function withWeights(block: RatingBlock, weights: Float32Array): RatingBlock {
  if (weights === block.values) return block;
  return { ...block, ref: { ...block.ref, name: `${block.ref.name}/weights` }, values: weights };
}
