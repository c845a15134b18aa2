import { sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { replaceParts } from '../../ratings/parts-in-files.ts';
import type { Ratings } from '../../ratings/ratings.ts';
import { type RatingWeight, weightOf } from './rating-weight.ts';
import { mapValues } from './value-index.ts';

/**
 * From this number of ratings on, the weight is computed once for each distinct value, by a table. For fewer,
 * the table costs more than it saves.
 */
const LEAST_MAPPED = 4096;

/**
 * Replaces sorted ratings by their weights. `counts`: number of ratings of each item. `keeps`: true if the
 * ratings are still needed, so that the weights get new memory; otherwise weights overwrite the ratings.
 * Ratings in files are written again.
 */
export function weightedRatings(
  { ratings, rows }: { readonly ratings: Ratings; readonly rows: 'users' | 'items' },
  weight: RatingWeight,
  { counts, keeps }: { readonly counts: ArrayLike<number>; readonly keeps: boolean },
  ctx: ExecutionContext,
): Promise<Ratings> {
  const countAt =
    rows === 'items' ? (row: number) => counts[row] : (_: number, column: number) => counts[column];
  return replaceParts(
    ratings,
    ({ from, firstColumn, block }) =>
      weightedBlock(block, weight, {
        countAt: (row, column) => countAt(from + row, firstColumn + column),
        keeps,
      }),
    ctx,
  );
}

/**
 * Like weightedRatings, for one block. `countAt`: the number of ratings of a rating's item, by the rating's
 * row and column in the block.
 */
export function weightedBlock(
  block: RatingBlock,
  weight: RatingWeight,
  { countAt, keeps }: { readonly countAt: (row: number, column: number) => number; readonly keeps: boolean },
): RatingBlock {
  const { rows, offsets, indices, values } = block;
  const weights = keeps ? sharedArray(Float32Array, values.length) : values;
  if (weight.form === 'bm25' || values.length < LEAST_MAPPED) {
    for (let row = 0; row < rows; row++) {
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        weights[k] = weightOf(weight, values[k], countAt(row, indices[k]));
    }
  } else mapValues(values, weights, (rating) => weightOf(weight, rating, 1));
  return keeps
    ? { ...block, ref: { ...block.ref, name: `${block.ref.name}/weights` }, values: weights }
    : block;
}
