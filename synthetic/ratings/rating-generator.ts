import type { RecordBatch } from 'apache-arrow';
import { type RatingPart, ratingParts } from '../preset.ts';
import { ItemSampler } from './item-sampler.ts';
import { PlantedUser } from './planted-model.ts';
import { purposes, RandomStream } from './random-stream.ts';
import { RatingBatchBuilder } from './rating-batch.ts';
import type { RatingStatistics } from './rating-statistics.ts';
import { degreeOf, type RatingTables, testDegreeOf, type UserRange } from './rating-tables.ts';

export interface GenerateOptions {
  /** Default: all users. */
  readonly users?: UserRange;
  /** Default: both. Ratings of the other part only cost the draw of their items. */
  readonly parts?: readonly RatingPart[];
  /** Rows of a full batch. Default 65,536. */
  readonly batchSize?: number;
  /** Adds the column `timestamp` (see RatingTimes). */
  readonly timestamps?: boolean;
  /** Counters of the generated ratings. */
  readonly statistics?: RatingStatistics;
}

interface PartBatch {
  readonly part: RatingPart;
  /** {user: int32, item: int32, rating: float32[, timestamp: int64]} */
  readonly batch: RecordBatch;
}

/**
 * The ratings of a range of users as batches of both parts, in one pass.
 *
 * Contract: a rating depends only on preset, seed, user and its position among the user's ratings, so the
 * concatenated batches of adjacent ranges have the same rows as the whole. Users are in id order, a user's
 * ratings in the order drawn; a user's items are all different. Memory is one batch per part and some arrays
 * of users or items, for any number of ratings.
 */
export function* generateRatings(
  tables: RatingTables,
  options: GenerateOptions = {},
): Generator<PartBatch, void, undefined> {
  const { preset, seed } = tables;
  const { scale } = preset;
  const { first, end } = options.users ?? { first: 0, end: preset.users };
  const { parts = ratingParts, batchSize = 65_536, timestamps = false, statistics } = options;
  const builder = () => new RatingBatchBuilder(batchSize, timestamps);
  const builders = { train: builder(), test: builder() };
  const sampler = new ItemSampler(tables.items);
  const items = new Int32Array(preset.items);
  const planted = new PlantedUser(preset, seed, tables.planted);
  const draws = new RandomStream(seed, purposes.itemsOfUser);
  const split = new RandomStream(seed, purposes.split);
  const times = new RatingTimes(seed);
  for (let user = first; user < end; user++) {
    const degree = degreeOf(tables, user);
    let testLeft = testDegreeOf(tables, user);
    if (!parts.includes('train') && testLeft === 0) continue;
    sampler.sample(degree, draws.aim(user), items);
    planted.aim(user);
    split.aim(user);
    if (timestamps) times.aim(user, degree);
    for (let n = 0; n < degree; n++) {
      // Selection sampling: all remaining ratings are equally likely to be among the remaining test ratings.
      const part = split.nextUniform() * (degree - n) < testLeft ? 'test' : 'train';
      if (part === 'test') testLeft--;
      const time = timestamps ? times.next() : 0;
      if (!parts.includes(part)) continue;
      const item = items[n];
      const signal = planted.signal(item);
      const level = planted.level(n, signal);
      statistics?.count(part, item, level, signal);
      builders[part].append(user, item, scale.minimum + level * scale.step, time);
      if (builders[part].isFull) yield { part, batch: builders[part].take() };
    }
  }
  for (const part of ratingParts) if (builders[part].rows > 0) yield { part, batch: builders[part].take() };
}

/** Range of the ratings' times, in seconds since 1970: the years 2015 to 2024. */
const FIRST = 1_420_070_400;
const LAST = 1_735_689_599;

/**
 * Mean seconds between two ratings of a user in one session, and the share of ratings that start a new
 * session.
 */
const GAP = 40;
const SITTINGS = 0.1;

/**
 * The times of users' ratings, in seconds: a user starts at a random time and rates in sessions, days to
 * months apart. They ascend with a user's ratings.
 */
class RatingTimes {
  readonly #random: RandomStream;
  #time = 0;
  #pause = 0;

  constructor(seed: number) {
    this.#random = new RandomStream(seed, purposes.times);
  }

  /** Starts the times of a user with this number of ratings. */
  aim(user: number, ratings: number): void {
    this.#random.aim(user);
    this.#time = FIRST + this.#random.nextUniform() * (LAST - FIRST);
    // All sessions together fit into the remaining time.
    const sittings = Math.max(1, 2 * SITTINGS * ratings);
    this.#pause = (LAST - this.#time) / sittings;
  }

  next(): number {
    const time = Math.floor(this.#time);
    const gap = -GAP * Math.log(this.#random.nextUniform());
    const pause = this.#random.nextUniform() < SITTINGS ? this.#random.nextUniform() * this.#pause : 0;
    this.#time = Math.min(LAST, this.#time + gap + pause);
    return time;
  }
}
