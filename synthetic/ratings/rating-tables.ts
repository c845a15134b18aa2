import { UsageError } from '../../engine/errors.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { RatingPart, RatingPreset } from '../preset.ts';
import { buildAliasTable } from './alias-table.ts';
import { degreeSequence } from './degree-sequence.ts';
import type { ItemLaw } from './item-sampler.ts';
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

/** Rows of one part in a range of users (default: all). */
export function ratingsOf(
  tables: RatingTables,
  part: RatingPart,
  users: UserRange = { first: 0, end: tables.preset.users },
): number {
  const test = testBefore(tables, users.end) - testBefore(tables, users.first);
  return part === 'test' ? test : tables.firstRating[users.end] - tables.firstRating[users.first] - test;
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
