import { DataError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import {
  type WeightForm,
  type ValueWeight,
  sparkWeight,
  weightOf,
  ValueCounts,
  mapValues,
} from '../../../engine/numbers/value-index.ts';
import { sharedArray, type Partition } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { passOver, passOverBlock, replaceParts } from '../../ratings/parts-in-files.ts';
import { hostForm, type RatingBlock, type Ratings } from '../../ratings/ratings.ts';

/**
 * The formula for the weight of an implicit rating (see ValueWeight), whose constants are learned from the
 * training set: `scale` makes the mean weight 1, and `unit` is the geometric mean of |r|. New ratings for the
 * model get weights by the same formula. Two properties of the training set's weights are for the plan.
 */
export type LearnedWeight = ValueWeight & {
  /** Largest weight in the training set. */
  readonly largest: number;
  /** True if every rating equals its weight. */
  readonly changesNothing: boolean;
};

/**
 * Computes the constants of the formula from a training set. `counts`: number of ratings of each item. The
 * result has the same bits however the ratings are divided into parts: sums are over distinct values in
 * ascending order, or row by row if there are too many values or the formula uses the item.
 */
export async function learnWeight(
  form: WeightForm,
  byUser: Ratings,
  counts: Int32Array,
  ctx: ExecutionContext,
): Promise<LearnedWeight> {
  const distinct = await distinctValues(byUser, ctx);
  const logarithms = distinct ? ofDistinct(distinct, Math.log) : await ofRows(byUser, null, counts, ctx);
  const { least, most } = logarithms;
  const changesNothing = form === 'spark' || (form !== 'bm25' && least === 1 && most === 1);
  if (changesNothing) {
    const ones: ValueWeight = { ...sparkWeight, form };
    // Later ratings, as in fold-in, are weighed by the formula: a rating of 1 has to keep the weight 1.
    return { ...ones, scale: form === 'spark' ? 1 : 1 / weightOf(ones, 1, 1), largest: most, changesNothing };
  }
  const total = counts.reduce((sum, count) => sum + count, 0);
  const unscaled: ValueWeight = {
    form,
    unit: Math.exp(logarithms.mean),
    scale: 1,
    meanCount: total / Math.max(1, counts.length),
  };
  const { mean } =
    distinct && form !== 'bm25'
      ? ofDistinct(distinct, (size) => weightOf(unscaled, size, 1))
      : await ofRows(byUser, unscaled, counts, ctx);
  const weight = { ...unscaled, scale: 1 / mean };
  // No formula gives a smaller weight for a larger rating. bm25 gives a smaller weight for an item with more
  // ratings, so the largest weight has count 0.
  return { ...weight, largest: Math.abs(weightOf(weight, most, 0)), changesNothing };
}

/**
 * The formula with its constants, from the distinct sizes of ratings other than 0, each with its number. The
 * formula bm25 also needs the ratings of each item.
 */
export function weightOfDistinct(form: Exclude<WeightForm, 'bm25'>, distinct: Distinct): ValueWeight {
  if (form === 'spark' || distinct.length === 0) return { ...sparkWeight, form };
  const unit = Math.exp(ofDistinct(distinct, Math.log).mean);
  const unscaled: ValueWeight = { form, unit, scale: 1, meanCount: 1 };
  return { ...unscaled, scale: 1 / ofDistinct(distinct, (size) => weightOf(unscaled, size, 1)).mean };
}

/** The constants for a model's metadata. */
export function weightJson({ form, unit, scale, meanCount }: ValueWeight): JsonObject {
  return { form, unit, scale, meanCount };
}

/**
 * Reads the formula from a model's metadata. A model without one was trained on the ratings as they are.
 * Throws DataError for values that no training writes.
 */
export function readWeight(stored: Json | undefined): ValueWeight {
  if (stored === undefined || stored === null) return sparkWeight;
  const { form, unit, scale, meanCount } = stored as JsonObject;
  const isForm = ['spark', 'raw', 'binary', 'log', 'bm25'].includes(form as string);
  const numbers = [unit, scale, meanCount].every(
    (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
  );
  if (!isForm || !numbers)
    throw new DataError(
      `the model's weight of ratings is damaged: ${JSON.stringify(stored)?.slice(0, 100)}`,
      { phase: 'load', advice: 'Train the model again' },
    );
  return {
    form: form as WeightForm,
    unit: unit as number,
    scale: scale as number,
    meanCount: meanCount as number,
  };
}

/** Values with the number of times that each occurs. */
export type Distinct = readonly (readonly [value: number, count: number])[];

/** Mean of a function of |r| over all ratings, and the smallest and largest |r|. */
interface Sizes {
  readonly mean: number;
  readonly least: number;
  readonly most: number;
}

/**
 * The distinct values of ratings with their counts, in ascending order. Undefined if there are too many (see
 * ValueCounts).
 */
async function distinctValues(ratings: Ratings, ctx: ExecutionContext): Promise<Distinct | undefined> {
  const found = await passOver<'count-values'>(ratings, ctx, ({ block }, give) => ({
    kernel: 'count-values',
    inputs: { block: give('block', hostForm(block)) },
    outputs: {},
    params: {},
  }));
  const all = new ValueCounts();
  for (const { distinct } of found) {
    if (distinct === null) return undefined;
    for (const [value, count] of distinct) all.addCount(value, count);
  }
  return all.sorted();
}

function ofDistinct(distinct: Distinct, of: (size: number) => number): Sizes {
  let [sum, all, least, most] = [0, 0, Infinity, 0];
  for (const [value, count] of distinct) {
    const size = Math.abs(value);
    sum += count * of(size);
    all += count;
    least = Math.min(least, size);
    most = Math.max(most, size);
  }
  return { mean: sum / all, least, most };
}

/**
 * Sizes by a pass over the ratings: of the weights by a formula, or for null of the logarithms of |r|. Sums
 * are float64, within rows first.
 */
async function ofRows(
  ratings: Ratings,
  weight: ValueWeight | null,
  counts: Int32Array,
  ctx: ExecutionContext,
): Promise<Sizes> {
  const sums = sharedArray(Float64Array, ratings.rows);
  const found = await passOver<'sum-weights'>(ratings, ctx, ({ from, firstColumn, block }, give) => {
    const own = sums.subarray(from, from + block.rows);
    return {
      kernel: 'sum-weights',
      inputs: {
        block: give('block', hostForm(block)),
        itemCounts: give('itemCounts', itemCountsOf(counts.subarray(firstColumn))),
      },
      outputs: { rowSums: give('rowSums', { layout: 'row-sums', rows: block.rows, columns: { sums: own } }) },
      params: { weight },
    };
  });
  return {
    mean: sums.reduce((sum, one) => sum + one, 0) / ratings.ratings,
    least: found.reduce((least, values) => Math.min(least, values.least), Infinity),
    most: found.reduce((most, values) => Math.max(most, values.most), 0),
  };
}

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
function itemCountsOf(counts: Int32Array | Uint32Array): Partition {
  return { layout: 'item-counts', rows: counts.length, columns: { counts } };
}

/**
 * Replaces the ratings of one block by their weights, in place. `countAt`: the number of ratings of a
 * rating's item, by the rating's column and row in the block.
 */
export function weighBlock(
  { rows, offsets, indices, values }: RatingBlock,
  weight: ValueWeight,
  countAt: (column: number, row: number) => number,
): void {
  if (weight.form !== 'bm25') mapValues(values, values, (rating) => weightOf(weight, rating, 1));
  else
    for (let row = 0; row < rows; row++)
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        values[k] = weightOf(weight, values[k], countAt(indices[k], row));
}

function withWeights(block: RatingBlock, weights: Float32Array): RatingBlock {
  if (weights === block.values) return block;
  return { ...block, ref: { ...block.ref, name: `${block.ref.name}/weights` }, values: weights };
}
