import type { RatingBlock } from '../../ratings/rating-block.ts';
import { meanRating } from '../../als/biases.ts';

/** How ratings are turned into the numbers that SGD sees: (r - center) / deviation. */
export interface RatingScale {
  /** μ, whether it is taken off or not. */
  readonly mean: number;
  /** μ with biases, else 0: without them nothing would put it back. */
  readonly center: number;
  /** σ, the population's; of ratings that are all alike, their size (or 1); never less than what a model that is updated asks for. */
  readonly deviation: number;
}

/** The scale of a block's ratings, in float64 in the block's order. `given`: a μ to use in place of the block's own, and the least σ. */
export function ratingScale(block: RatingBlock, centered: boolean, given: { readonly mean?: number; readonly leastDeviation?: number } = {}): RatingScale {
  const { values } = block;
  const own = meanRating(block);
  const mean = given.mean ?? own;
  let squares = 0;
  for (let k = 0; k < values.length; k++) squares += (values[k] - own) ** 2;
  const deviation = Math.sqrt(squares / values.length);
  const alike = deviation <= 1e-6 * Math.abs(own) || deviation === 0;
  return { mean, center: centered ? mean : 0, deviation: Math.max(given.leastDeviation ?? 0, alike ? Math.abs(own) || 1 : deviation) };
}

/** Puts the block's ratings on the scale, in place: only for a block that nobody else has seen yet. Gives Σ r² of what they are then. */
export function standardize({ values }: RatingBlock, { center, deviation }: RatingScale): number {
  let squares = 0;
  for (let k = 0; k < values.length; k++) {
    values[k] = (values[k] - center) / deviation;
    squares += values[k] * values[k];
  }
  return squares;
}
