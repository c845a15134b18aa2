import { UsageError } from '../engine/errors.ts';
import { formatCount } from '../engine/format.ts';
import type { RatingPreset } from './preset.ts';
import { movielens20m } from './presets.ts';

/** Users, items and ratings of a data set, with both parts counted together. */
export interface ProblemSize {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
}

/** The share of the ratings in the test part, as in MovieLens-20M's preset. */
const TEST_SHARE = 0.1;

/**
 * Ratings of the least and most active user, relative to the average: MovieLens-20M has 20 and 9,254 for 144.
 */
const LEAST = 0.14;
const MOST = 64;

/**
 * Highest position of the mean between the fewest and the most ratings of a user: the law reaches up to 0.5,
 * with increasing effort.
 */
const MEAN_PLACE = 0.4;

/**
 * A shape with exactly these counts, and the degrees, popularity, scale and planted signal of MovieLens-20M.
 * If users rate a large share of the items, their degrees become more equal, up to a full matrix.
 *
 * @throws UsageError for counts that are not whole numbers from 1, ids beyond int32, and more ratings than
 * pairs.
 */
export function anyShape({ users, items, ratings }: ProblemSize): RatingPreset {
  const refuse = (summary: string, advice: string) => new UsageError(summary, { phase: 'generate', advice });
  for (const [name, count] of Object.entries({ users, items, ratings })) {
    if (!Number.isSafeInteger(count) || count < 1)
      throw refuse(`${name} must be a whole number from 1, got ${count}`, 'Give the size of the data set');
  }
  for (const [name, count] of Object.entries({ users, items })) {
    if (count >= 2 ** 31)
      throw refuse(
        `${formatCount(count)} ${name} are too many`,
        `Ids are int32: give fewer than ${formatCount(2 ** 31)}, and copies for more`,
      );
  }
  if (ratings > users * items) {
    throw refuse(
      `${formatCount(ratings)} ratings do not fit: ${formatCount(users)} users and ${formatCount(items)} items have ${formatCount(users * items)} pairs, and a pair has one rating`,
      'Give fewer ratings, or more users or items',
    );
  }
  const mean = ratings / users;
  const maximum = Math.min(items, Math.max(1, Math.ceil(MOST * mean)));
  // Rounding can put the quotient of a full matrix above the mean.
  const minimum = Math.min(
    mean,
    Math.max(Math.floor(LEAST * mean), (mean - MEAN_PLACE * maximum) / (1 - MEAN_PLACE)),
  );
  const test = Math.floor(ratings * TEST_SHARE);
  return {
    ...movielens20m,
    name: 'custom',
    users,
    items,
    train: ratings - test,
    test,
    degrees: { ...movielens20m.degrees, minimum, maximum },
  };
}
