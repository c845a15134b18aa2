import { DataError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { blocksOf } from '../../ratings/parts-in-files.ts';
import type { Ratings } from '../../ratings/ratings.ts';
import { ValueCounts } from './value-index.ts';

/** The formulas for weights; the parameter value `auto` means `log`. */
export type KnownForm = 'spark' | 'raw' | 'binary' | 'log' | 'bm25';

/**
 * The formula for the weight of an implicit rating r, with constants that are learned from the training set.
 * New ratings for the model get weights by the same formula.
 *
 *     spark   |r|
 *     raw     |r| · scale
 *     binary  1
 *     log     (1 + ln(1 + |r| / unit)) · scale
 *     bm25    x (k1 + 1) / (k1 (1 - b + b n_v / meanCount) + x) · scale,   x = |r| / unit,   n_v ratings of the item
 *
 * `scale` makes the mean weight of the training set 1, `unit` is the geometric mean of |r|, and `meanCount`
 * the mean number of ratings of an item.
 */
export interface RatingWeight {
  readonly form: KnownForm;
  readonly unit: number;
  readonly scale: number;
  readonly meanCount: number;
}

/** The formula, with two properties of the training set's weights that the plan needs. */
export interface LearnedWeight extends RatingWeight {
  /** Largest weight in the training set. */
  readonly largest: number;
  /** True if every rating equals its weight. */
  readonly changesNothing: boolean;
}

/** Robertson's constants of BM25. */
const K1 = 1.2;
const B = 0.75;

/** Spark's form: a rating is its own weight. */
export const sparkWeight: RatingWeight = { form: 'spark', unit: 1, scale: 1, meanCount: 1 };

/**
 * The weight of a rating, with the rating's sign. `count`: number of ratings of its item, which only bm25
 * uses.
 */
export function weightOf(
  { form, unit, scale, meanCount }: RatingWeight,
  rating: number,
  count: number,
): number {
  if (form === 'spark') return rating;
  if (form === 'binary') return Math.sign(rating);
  if (form === 'raw') return rating * scale;
  const x = Math.abs(rating) / unit;
  if (form === 'log') return Math.sign(rating) * (1 + Math.log1p(x)) * scale;
  return Math.sign(rating) * ((x * (K1 + 1)) / (K1 * (1 - B + (B * count) / meanCount) + x)) * scale;
}

/**
 * Computes the constants of the formula from a training set. `counts`: number of ratings of each item. The
 * result has the same bits however the ratings are divided into parts: sums are over distinct values in
 * ascending order, or row by row if there are too many values or the formula uses the item.
 */
export async function learnWeight(
  form: KnownForm,
  byUser: Ratings,
  counts: ArrayLike<number>,
  ctx: ExecutionContext,
): Promise<LearnedWeight> {
  const found = new ValueCounts();
  for await (const { block } of blocksOf(byUser, ctx)) found.add(block.values);
  const distinct = found.sorted();
  const meanOf = async (of: (rating: number) => number) =>
    distinct ? meanOfValues(distinct, of) : meanOver(byUser, of, ctx);
  const [least, most] = distinct ? boundsOfValues(distinct) : await boundsOf(byUser, ctx);
  const changesNothing = form === 'spark' || (form !== 'bm25' && least === 1 && most === 1);
  if (changesNothing) {
    const ones: RatingWeight = { ...sparkWeight, form };
    // Later ratings, as in fold-in, are weighed by the formula: a rating of 1 has to keep the weight 1.
    return { ...ones, scale: form === 'spark' ? 1 : 1 / weightOf(ones, 1, 1), largest: most, changesNothing };
  }
  const unit = Math.exp(await meanOf((rating) => Math.log(Math.abs(rating))));
  let total = 0;
  for (let item = 0; item < counts.length; item++) total += counts[item];
  const unscaled: RatingWeight = { form, unit, scale: 1, meanCount: total / Math.max(1, counts.length) };
  const sizeOf = (rating: number, count: number) => Math.abs(weightOf(unscaled, rating, count));
  const mean =
    form === 'bm25'
      ? await meanOver(byUser, (rating, item) => sizeOf(rating, counts[item]), ctx)
      : await meanOf((rating) => sizeOf(rating, 1));
  const weight = { ...unscaled, scale: 1 / mean };
  // No formula gives a smaller weight for a larger rating. bm25 gives a smaller weight for an item with more
  // ratings, so the largest weight has count 0.
  return { ...weight, largest: Math.abs(weightOf(weight, most, 0)), changesNothing };
}

/** The constants for a model's metadata. */
export function weightJson({ form, unit, scale, meanCount }: RatingWeight): JsonObject {
  return { form, unit, scale, meanCount };
}

/**
 * Reads the formula from a model's metadata. A model without one was trained on the ratings as they are.
 * Throws DataError for values that no training writes.
 */
export function readWeight(stored: Json | undefined): RatingWeight {
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
    form: form as KnownForm,
    unit: unit as number,
    scale: scale as number,
    meanCount: meanCount as number,
  };
}

type Distinct = readonly (readonly [value: number, count: number])[];

/** Smallest and largest |r|. */
function boundsOfValues(distinct: Distinct): [number, number] {
  const sizes = distinct.map(([value]) => Math.abs(value));
  return sizes.reduce(([least, most], size) => [Math.min(least, size), Math.max(most, size)], [Infinity, 0]);
}

function meanOfValues(distinct: Distinct, of: (value: number) => number): number {
  let [sum, all] = [0, 0];
  for (const [value, count] of distinct) {
    sum += count * of(value);
    all += count;
  }
  return sum / all;
}

async function boundsOf(ratings: Ratings, ctx: ExecutionContext): Promise<[number, number]> {
  let [least, most] = [Infinity, 0];
  for await (const {
    block: { values },
  } of blocksOf(ratings, ctx)) {
    for (let k = 0; k < values.length; k++) {
      const size = Math.abs(values[k]);
      if (size < least) least = size;
      if (size > most) most = size;
    }
  }
  return [least, most];
}

/** Mean of a function of a rating and its item, in float64, summed within rows first. */
async function meanOver(
  ratings: Ratings,
  of: (rating: number, item: number) => number,
  ctx: ExecutionContext,
): Promise<number> {
  const sums = new Float64Array(ratings.rows);
  for await (const {
    from,
    firstColumn,
    block: { rows, offsets, indices, values },
  } of blocksOf(ratings, ctx)) {
    for (let row = 0; row < rows; row++) {
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        sums[from + row] += of(values[k], firstColumn + indices[k]);
    }
  }
  return sums.reduce((sum, one) => sum + one, 0) / ratings.ratings;
}
