import { sharedArray } from '../../engine/partition.ts';
import type { RatingBlock } from '../ratings/rating-block.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { replaceParts } from '../ratings/parts-in-files.ts';
import type { Ratings } from '../ratings/ratings.ts';

/** Ratings are trained unscaled if their magnitude is between 1 / USUAL and USUAL. */
const USUAL = 64;

/** μ and σ of ratings. */
export interface RatingLevel {
  readonly mean: number;
  readonly deviation: number;
  /** Damped means of items: see SortedFacts. */
  readonly columns: Float32Array;
}

/** The level of ratings after changing their unit. */
export function levelInUnit({ mean, deviation, columns }: RatingLevel, unit: number): RatingLevel {
  return {
    mean: mean / unit,
    deviation: deviation / unit,
    columns: unit === 1 ? columns : columns.map((value) => value / unit),
  };
}

/**
 * The unit in which ratings are trained, a power of four near their magnitude (their deviation with biases,
 * else their root mean square), so that factors and sums stay within float32 and float16 for ratings of any
 * magnitude. 1 for usual ratings. Training in the unit u with λ / u gives factors divided by √u and biases
 * divided by u; both are powers of two, so nothing is rounded.
 */
export function ratingUnit(
  { mean, deviation }: Pick<RatingLevel, 'mean' | 'deviation'>,
  biases: boolean,
): number {
  return unitOfSize(biases ? deviation : Math.hypot(mean, deviation));
}

/** Unit for ratings with a root mean square, or deviation. */
export function unitOfSize(size: number): number {
  if (!(size > 0) || (size <= USUAL && size >= 1 / USUAL)) return 1;
  return 4 ** Math.round(Math.log2(size) / 2);
}

/**
 * Rows of norm 1 have another norm in the unit of the ratings. The change is limited to this factor, beyond
 * which squares would exceed float32.
 */
const LARGEST_NORM = 1024;

/** Norm of the initial rows in a unit. */
export function startNorm(unit: number): number {
  return Math.min(Math.max(1 / Math.sqrt(unit), 1 / LARGEST_NORM), LARGEST_NORM);
}

/** Ratings converted to a unit; those in files are rewritten. */
export async function ratingsInUnit(ratings: Ratings, unit: number, ctx: ExecutionContext): Promise<Ratings> {
  return unit === 1 ? ratings : replaceParts(ratings, ({ block }) => inUnit(block, unit), ctx);
}

/** A block with its ratings converted to a unit; its other columns are shared. */
export function inUnit(block: RatingBlock, unit: number): RatingBlock {
  if (unit === 1) return block;
  const values = sharedArray(Float32Array, block.values.length);
  for (let k = 0; k < values.length; k++) values[k] = block.values[k] / unit;
  return { ...block, ref: { ...block.ref, name: `${block.ref.name}/unit` }, values };
}
