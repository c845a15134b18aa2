import { UsageError } from '../engine/errors.ts';

export const ratingParts = ['train', 'test'] as const;
export type RatingPart = (typeof ratingParts)[number];

/**
 * The description of a synthetic data set, as data: a new one needs no code. Counts are exact; shapes follow
 * the data set of the same name, as far as they are public.
 */
export interface RatingPreset {
  readonly name: string;
  readonly users: number;
  readonly items: number;
  /** Ratings of the part; every user's ratings are divided in the proportion of the parts. */
  readonly train: number;
  readonly test: number;
  readonly degrees: UserDegrees;
  readonly popularity: ItemPopularity;
  readonly scale: RatingScale;
  readonly model: PlantedModelShape;
}

/**
 * The distribution of ratings per user, train and test together: P(degree > d) ~ (1 + (d - minimum) /
 * s)^-exponent up to the maximum; s follows from the total.
 */
export interface UserDegrees {
  readonly minimum: number;
  readonly maximum: number;
  readonly exponent: number;
}

/**
 * The item of popularity rank r (from 0) has weight (1 + r / (head * items))^-exponent: flat at the head,
 * then a power law.
 */
export interface ItemPopularity {
  readonly exponent: number;
  /** The share of the items in the flat head. */
  readonly head: number;
}

/** The possible ratings: minimum, minimum + step, ..., maximum. */
export interface RatingScale {
  readonly minimum: number;
  readonly maximum: number;
  readonly step: number;
}

/**
 * rating = mean + b_u + c_i + p_u·q_i + noise, rounded to the scale. Deviations are standard deviations in
 * units of the rating.
 */
export interface PlantedModelShape {
  readonly mean: number;
  readonly userBias: number;
  readonly itemBias: number;
  readonly rank: number;
  /** Deviation of the product p_u·q_i. */
  readonly interaction: number;
  readonly noise: number;
}

/** Fewest items per rating of the average user: with fewer, all users would rate the popular ones. */
const ITEMS_PER_MEAN_DEGREE = 4;

/**
 * The preset at another size. Users and ratings grow with `scale`, so that the mean degree is constant; items
 * grow with its square root, so density changes with 1 / sqrt(scale) and ratings per item with sqrt(scale).
 * The number of items is always at least four times the mean degree, and no user rates more than half of
 * them, so that every scale gives a data set: movielens20m never has fewer than 1 user, 578 items and 144
 * ratings.
 *
 * @throws UsageError unless 0 < scale and ids stay below 2^31.
 */
export function scalePreset(preset: RatingPreset, scale: number): RatingPreset {
  if (!(scale > 0) || !Number.isFinite(scale)) {
    throw new UsageError(`scale is ${scale}`, {
      phase: 'generate',
      advice: 'Give a number above 0, for instance 0.01',
    });
  }
  if (scale === 1) return preset;
  const users = Math.max(1, Math.round(preset.users * scale));
  const ratings = preset.train + preset.test;
  const meanDegree = ratings / preset.users;
  const total = Math.max(1, Math.round(users * meanDegree));
  const test = Math.min(total - 1, Math.round(total * (preset.test / ratings)));
  const fewest = Math.min(preset.items, Math.ceil(ITEMS_PER_MEAN_DEGREE * meanDegree));
  const items = Math.max(fewest, Math.round(preset.items * Math.sqrt(scale)));
  if (users >= 2 ** 31 || items >= 2 ** 31) {
    throw new UsageError(`scale ${scale} needs ${users} users and ${items} items`, {
      phase: 'generate',
      advice: 'Ids are int32: choose a smaller scale',
    });
  }
  const degrees = { ...preset.degrees, maximum: Math.min(preset.degrees.maximum, Math.floor(items / 2)) };
  return { ...preset, users, items, train: total - test, test, degrees };
}
