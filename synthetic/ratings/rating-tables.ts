import { UsageError } from '../../engine/errors.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { RatingPreset, UserDegrees } from '../preset.ts';
import { buildAliasTable, type ItemLaw } from './item-sampler.ts';
import { type PlantedItems, plantItems } from './planted-model.ts';
import { purposes, RandomStream } from './random-stream.ts';

/**
 * The tables of all users, made once from preset and seed: O(users + items * rank) bytes for any number of
 * ratings, in shared memory, so that threads need no copies. Ids start at 0 and are assigned at random, so
 * that they do not depend on degree or popularity.
 */
export interface RatingTables {
  readonly preset: RatingPreset;
  readonly seed: number;
  /**
   * users + 1 numbers: the ratings of user u, train and test together, are firstRating[u] .. firstRating[u +
   * 1] - 1.
   */
  readonly firstRating: Float64Array;
  readonly items: ItemLaw;
  readonly planted: PlantedItems;
}

/** Users first .. end - 1. */
export interface UserRange {
  readonly first: number;
  readonly end: number;
}

/** Returns the seed. @throws UsageError unless it is an integer from 0 below 2^53. */
export function checkSeed(seed: number): number {
  if (Number.isSafeInteger(seed) && seed >= 0) return seed;
  throw new UsageError(`seed is ${seed}`, { phase: 'generate', advice: 'Give an integer from 0 below 2^53' });
}

/** Builds the tables, in about 0.3 s for a preset of 140,000 users. */
export function buildRatingTables(preset: RatingPreset, seed: number): RatingTables {
  checkSeed(seed);
  return {
    preset,
    seed,
    firstRating: placeUsers(preset, seed),
    items: itemLaw(preset, seed),
    planted: plantItems(preset, seed),
  };
}

/** Ratings of user u in both parts. */
export function degreeOf(tables: RatingTables, user: number): number {
  return tables.firstRating[user + 1] - tables.firstRating[user];
}

/** Ratings of every user by id. */
export function userDegrees(tables: RatingTables): Int32Array {
  const degrees = new Int32Array(tables.preset.users);
  for (let user = 0; user < degrees.length; user++) degrees[user] = degreeOf(tables, user);
  return degrees;
}

/**
 * Test ratings of user u. The share is rounded on the running total, not per user, so that the parts have
 * exact sums and every user's share is off by less than one.
 */
export function testDegreeOf(tables: RatingTables, user: number): number {
  return testBefore(tables, user + 1) - testBefore(tables, user);
}

/** The test ratings of all users before this one. */
function testBefore({ preset, firstRating }: RatingTables, user: number): number {
  const total = preset.train + preset.test;
  return firstRating[user] === total ? preset.test : Math.floor((firstRating[user] / total) * preset.test);
}

function placeUsers(preset: RatingPreset, seed: number): Float64Array {
  const degrees = degreeSequence(preset.users, preset.train + preset.test, preset.degrees);
  const rankOf = permutation(preset.users, new RandomStream(seed, purposes.userOrder).aim(0));
  const firstRating = sharedArray(Float64Array, preset.users + 1);
  for (let user = 0; user < preset.users; user++)
    firstRating[user + 1] = firstRating[user] + degrees[rankOf[user]];
  return firstRating;
}

function itemLaw(preset: RatingPreset, seed: number): ItemLaw {
  const { exponent, head } = preset.popularity;
  const rankOf = permutation(preset.items, new RandomStream(seed, purposes.itemOrder).aim(0));
  const weights = sharedArray(Float64Array, preset.items);
  rankOf.forEach((rank, item) => (weights[item] = Math.pow(1 + rank / (head * preset.items), -exponent)));
  return { weights, table: buildAliasTable(weights) };
}

/** 0..count-1 in random order (Fisher-Yates); id = permutation[rank] hides a rank in the id. */
function permutation(count: number, random: RandomStream): Int32Array {
  const order = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const j = Math.floor(random.nextUniform() * (i + 1));
    order[i] = order[j];
    order[j] = i;
  }
  return order;
}

/** Most halvings, enough to find a positive float64 to its last bits. */
const BISECTION_STEPS = 200;

/** Number of terms at the steep end of a sum that are added one by one. */
const ADDED = 4096;

/**
 * The numbers of ratings of `count` users, ascending, with the exact sum `total`.
 *
 * Number r is the quantile at (r + 1/2) / count of the truncated Lomax distribution described at
 * `UserDegrees`. Its scale s is found by bisection so that the quantiles sum to the total, and rounding
 * errors do not accumulate.
 *
 * @throws UsageError if no scale reaches the total: its mean must be above the minimum and below the middle
 * of the range.
 */
export function degreeSequence(count: number, total: number, shape: UserDegrees): Int32Array {
  const { minimum, maximum } = shape;
  const mean = total / count;
  if (mean < minimum || mean > (minimum + maximum) / 2) {
    throw new UsageError(
      `${total} ratings of ${count} users are ${mean} each, outside ${minimum}..${(minimum + maximum) / 2}`,
      {
        phase: 'generate',
        advice: 'Change the totals or the degrees of the preset',
      },
    );
  }
  const scale = solveScale(count, total, shape);
  const degrees = new Int32Array(count);
  let exact = 0;
  let given = 0;
  for (let r = 0; r < count; r++) {
    exact += quantile((r + 0.5) / count, scale, shape);
    const upTo = r === count - 1 ? total : Math.round(exact);
    degrees[r] = upTo - given;
    given = upTo;
  }
  return degrees;
}

/**
 * The scale that gives the total. Sums increase with the scale, from `minimum` each towards the mean of the
 * uniform distribution.
 */
function solveScale(count: number, total: number, shape: UserDegrees): number {
  let low = 0;
  let high = 1;
  while (sumOfQuantiles(count, high, shape) < total && high < 2 ** 60) high *= 2;
  for (let step = 0; step < BISECTION_STEPS; step++) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    const sum = sumOfQuantiles(count, middle, shape);
    if (Math.abs(sum - total) < 0.01) return middle;
    if (sum < total) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * Σ quantile((r + 1/2) / count) over r < count, without a loop over all users. With h = (1 - beyond) / count,
 *
 *     sum = count (minimum - s) + s Σ x_r^-k,   x_r = 1 - (r + 1/2) h,   k = 1 / exponent
 *
 * The last ADDED terms, where the power is steep, are added one by one. The others are at the middles of
 * cells of width h that fill y..1, where y >= ADDED h; their sum is an integral and a first correction
 * (Euler-Maclaurin formula), accurate to 1e-14 of the sum.
 */
function sumOfQuantiles(count: number, s: number, { minimum, maximum, exponent }: UserDegrees): number {
  const k = 1 / exponent;
  const beyond = Math.pow(1 + (maximum - minimum) / s, -exponent);
  const h = (1 - beyond) / count;
  const added = Math.min(count, ADDED);
  let sum = 0;
  for (let r = count - added; r < count; r++) sum += Math.pow(1 - (r + 0.5) * h, -k);
  if (added < count) {
    const y = 1 - (count - added) * h;
    const integral = k === 1 ? -Math.log(y) : (1 - Math.pow(y, 1 - k)) / (1 - k);
    sum += integral / h - (h / 24) * k * (Math.pow(y, -k - 1) - 1);
  }
  return count * (minimum - s) + s * sum;
}

/** x with P(X <= x) = p, where P(X > x) ~ (1 + (x - minimum) / s)^-a below the maximum. */
function quantile(p: number, s: number, { minimum, maximum, exponent: a }: UserDegrees): number {
  if (s === 0) return minimum;
  const beyond = Math.pow(1 + (maximum - minimum) / s, -a);
  return Math.min(maximum, minimum + s * (Math.pow(1 - p * (1 - beyond), -1 / a) - 1));
}
