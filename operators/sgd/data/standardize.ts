import type { RatingBlock } from '../../ratings/rating-block.ts';
import { meanRating } from '../../als/biases.ts';

/** The scale of SGD: ratings become (r - center) / deviation. */
export interface RatingScale {
  /** μ, also where it is not subtracted. */
  readonly mean: number;
  /** μ with biases, else 0: without biases a prediction has no term for it. */
  readonly center: number;
  /** σ of the population; for equal ratings their absolute value, or 1 where it is 0; at least the lower bound of a model that is updated, and a part of |μ| where it is not subtracted. */
  readonly deviation: number;
  /** True for ratings that are all equal, within rounding. */
  readonly alike?: boolean;
}

/** Most of |μ| / deviation without biases, whose factors make the level: steps of larger factors would be too long. Scales of stars have 3 to 6. */
const MOST_LEVEL = 8;

/** The scale of a block's ratings, in float64 in the block's order. `given`: a μ to use in place of the block's own, and the least σ. */
export function ratingScale(block: RatingBlock, centered: boolean, given: { readonly mean?: number; readonly leastDeviation?: number } = {}): RatingScale {
  const { values } = block;
  const own = meanRating(block);
  const mean = given.mean ?? own;
  let squares = 0;
  for (let k = 0; k < values.length; k++) squares += (values[k] - own) ** 2;
  const deviation = Math.sqrt(squares / values.length);
  // Half the distance between float32 numbers, relative.
  const alike = deviation <= 2 ** -24 * Math.abs(own);
  const least = Math.max(given.leastDeviation ?? 0, centered ? 0 : Math.abs(own) / MOST_LEVEL);
  return { mean, center: centered ? mean : 0, deviation: Math.max(least, alike ? Math.abs(own) || 1 : deviation), alike };
}

/** Puts the block's ratings on the scale, in place: only for a block that no device has been given yet. Gives Σ r² on the scale. */
export function standardize({ values }: RatingBlock, { center, deviation }: RatingScale): number {
  let squares = 0;
  for (let k = 0; k < values.length; k++) {
    values[k] = (values[k] - center) / deviation;
    squares += values[k] * values[k];
  }
  return squares;
}
