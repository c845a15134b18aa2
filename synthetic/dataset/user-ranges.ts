import type { RatingPreset } from '../preset.ts';
import type { UserRange } from '../ratings/rating-tables.ts';

/** Ratings of a part file, about, when nobody says otherwise. */
export const RATINGS_PER_PART = 1 << 22;

/** Data sets of fewer than this many part files get smaller ones, so that threads share them evenly. */
const WANTED_RANGES = 8;

/**
 * Cuts the users into ranges of equal length with about `ratingsPerPart` ratings each: what one thread makes at a time and what a part
 * file holds. Medium-sized data sets are cut up to four times finer. Neither seed nor threads have a say.
 */
export function userRanges({ users, train, test }: RatingPreset, ratingsPerPart: number = RATINGS_PER_PART): UserRange[] {
  const ratings = train + test;
  const wanted = Math.max(Math.ceil(ratings / ratingsPerPart), Math.min(WANTED_RANGES, Math.ceil((4 * ratings) / ratingsPerPart)));
  const ranges = Math.min(users, wanted);
  return Array.from({ length: ranges }, (_, range) => ({ first: Math.floor((users * range) / ranges), end: Math.floor((users * (range + 1)) / ranges) }));
}
