import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { replaceParts } from '../ratings/parts-in-files.ts';
import type { RatingBlock, Ratings } from '../ratings/ratings.ts';

/** Ratings are not scaled if their magnitude is between 1 / USUAL and USUAL. */
const USUAL = 64;

/** μ and σ of ratings. */
export interface RatingLevel {
  readonly mean: number;
  readonly deviation: number;
  /** Damped means of items: see SortedFacts. */
  readonly columns: Float32Array;
}

/** Mean, deviation and item means of ratings after all ratings are divided by `unit`. */
export function levelInUnit({ mean, deviation, columns }: RatingLevel, unit: number): RatingLevel {
  return {
    mean: mean / unit,
    deviation: deviation / unit,
    columns: unit === 1 ? columns : columns.map((value) => value / unit),
  };
}

/**
 * The number by which ratings are divided for training, so that factors and sums stay within float32 and
 * float16 for ratings of any magnitude. It is a power of four near their magnitude (with biases their
 * standard deviation, else their root mean square), and 1 for usual ratings. Training the divided ratings
 * with λ / unit gives factors divided by √unit and biases divided by unit. Both divisors are powers of two,
 * so nothing is rounded.
 */
export function ratingUnit(
  { mean, deviation }: Pick<RatingLevel, 'mean' | 'deviation'>,
  biases: boolean,
): number {
  return unitOfSize(biases ? deviation : Math.hypot(mean, deviation));
}

/** The unit for ratings of a given root mean square or standard deviation. */
export function unitOfSize(size: number): number {
  if (!(size > 0) || (size <= USUAL && size >= 1 / USUAL)) return 1;
  return 4 ** Math.round(Math.log2(size) / 2);
}

/**
 * Initial rows have norm 1 in the unit of the given ratings, and another norm in the training's unit. That
 * norm is limited to this factor, beyond which squares would exceed float32.
 */
const LARGEST_NORM = 1024;

/** The norm of the initial rows of factors if ratings are divided by `unit`. */
export function startNorm(unit: number): number {
  return Math.min(Math.max(1 / Math.sqrt(unit), 1 / LARGEST_NORM), LARGEST_NORM);
}

/** All ratings divided by `unit`. Ratings in files are written again. */
export async function ratingsInUnit(ratings: Ratings, unit: number, ctx: ExecutionContext): Promise<Ratings> {
  return unit === 1 ? ratings : replaceParts(ratings, ({ block }) => inUnit(block, unit), ctx);
}

/** A block with its ratings divided by `unit`. The other arrays are shared with the given block. */
export function inUnit(block: RatingBlock, unit: number): RatingBlock {
  if (unit === 1) return block;
  const values = sharedArray(Float32Array, block.values.length);
  for (let k = 0; k < values.length; k++) values[k] = block.values[k] / unit;
  return { ...block, ref: { ...block.ref, name: `${block.ref.name}/unit` }, values };
}
