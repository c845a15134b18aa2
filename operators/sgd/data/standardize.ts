import { heldBlocks, type SortedRatings } from '../../ratings/spilled-ratings.ts';

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

/** The scale of ratings, in float64 in the order of their rows. `given`: a μ to use in place of the ratings' own, and the least σ. */
export function ratingScale(ratings: SortedRatings, centered: boolean, given: { readonly mean?: number; readonly leastDeviation?: number } = {}): RatingScale {
  const blocks = heldBlocks(ratings);
  const own = blocks.reduce((sum, { block: { values } }) => addAll(sum, values), 0) / ratings.ratings;
  const mean = given.mean ?? own;
  const squares = blocks.reduce((sum, { block: { values } }) => addSquares(sum, values, own), 0);
  const deviation = Math.sqrt(squares / ratings.ratings);
  // Half the distance between float32 numbers, relative.
  const alike = deviation <= 2 ** -24 * Math.abs(own);
  const least = Math.max(given.leastDeviation ?? 0, centered ? 0 : Math.abs(own) / MOST_LEVEL);
  return { mean, center: centered ? mean : 0, deviation: Math.max(least, alike ? Math.abs(own) || 1 : deviation), alike };
}

/** Puts ratings on the scale, in place: only for ratings that no device has been given yet. Gives Σ r² on the scale. */
export function standardize(ratings: SortedRatings, { center, deviation }: RatingScale): number {
  return heldBlocks(ratings).reduce((squares, { block: { values } }) => {
    for (let k = 0; k < values.length; k++) {
      values[k] = (values[k] - center) / deviation;
      squares += values[k] * values[k];
    }
    return squares;
  }, 0);
}

function addAll(sum: number, values: Float32Array): number {
  for (let k = 0; k < values.length; k++) sum += values[k];
  return sum;
}

function addSquares(sum: number, values: Float32Array, mean: number): number {
  for (let k = 0; k < values.length; k++) sum += (values[k] - mean) ** 2;
  return sum;
}
