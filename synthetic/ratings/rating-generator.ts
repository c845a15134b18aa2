import type { RecordBatch } from 'apache-arrow';
import { type RatingPart, ratingParts } from '../preset.ts';
import { ItemSampler } from './item-sampler.ts';
import { expectedLevel, PlantedUser } from './planted-model.ts';
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
  /** Ratings so far, with this batch. */
  readonly rowsSoFar: number;
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
  const { preset } = tables;
  const { first, end } = options.users ?? { first: 0, end: preset.users };
  const { parts = ratingParts, batchSize = 65_536, timestamps } = options;
  const builder = () => new RatingBatchBuilder(batchSize, timestamps);
  const builders = { train: builder(), test: builder() };
  const user = new GeneratedUser(tables, options);
  let rowsSoFar = 0;
  const take = (part: RatingPart): PartBatch => {
    rowsSoFar += builders[part].rows;
    return { part, batch: builders[part].take(), rowsSoFar };
  };
  for (let id = first; id < end; id++) {
    if (!parts.includes('train') && testDegreeOf(tables, id) === 0) continue;
    user.aim(id);
    while (user.next()) {
      const { part } = user;
      if (!parts.includes(part)) continue;
      const builder = builders[part];
      user.appendTo(builder);
      if (builder.full) yield take(part);
    }
  }
  for (const part of ratingParts) if (builders[part].rows > 0) yield take(part);
}

/** Iterates over the ratings of one user at a time. */
class GeneratedUser {
  /** The part of the current rating. */
  part: RatingPart = 'train';
  readonly #tables: RatingTables;
  readonly #statistics: RatingStatistics | undefined;
  readonly #times: RatingTimes;
  readonly #sampler: ItemSampler;
  readonly #planted: PlantedUser;
  readonly #draws: RandomStream;
  readonly #split: RandomStream;
  readonly #items: Int32Array;
  #user = 0;
  #degree = 0;
  #testLeft = 0;
  #n = -1;
  #time = 0;

  constructor(tables: RatingTables, { statistics, timestamps }: GenerateOptions) {
    const { preset, seed } = tables;
    [this.#tables, this.#statistics] = [tables, statistics];
    this.#times = new RatingTimes(seed, timestamps);
    this.#sampler = new ItemSampler(tables.items);
    this.#planted = new PlantedUser(preset, seed, tables.planted);
    this.#draws = new RandomStream(seed, purposes.itemsOfUser);
    this.#split = new RandomStream(seed, purposes.split);
    this.#items = new Int32Array(preset.items);
  }

  /** Starts a user, before the first rating. */
  aim(user: number): void {
    [this.#user, this.#n] = [user, -1];
    this.#degree = degreeOf(this.#tables, user);
    this.#testLeft = testDegreeOf(this.#tables, user);
    this.#sampler.sample(this.#degree, this.#draws.aim(user), this.#items);
    this.#planted.aim(user);
    this.#split.aim(user);
    this.#times.aim(user, this.#degree);
  }

  /** Advances to the next rating, which gets its part and time. Returns false after the last. */
  next(): boolean {
    if (++this.#n >= this.#degree) return false;
    // Selection sampling: all remaining ratings are equally likely to be among the remaining test ratings.
    const isTest = this.#split.nextUniform() * (this.#degree - this.#n) < this.#testLeft;
    if (isTest) this.#testLeft--;
    this.part = isTest ? 'test' : 'train';
    this.#time = this.#times.next();
    return true;
  }

  appendTo(builder: RatingBatchBuilder): void {
    const { scale, model } = this.#tables.preset;
    const item = this.#items[this.#n];
    const signal = this.#planted.signal(item);
    const level = this.#planted.level(this.#n, signal);
    this.#statistics?.count(this.part, item, level);
    if (this.part === 'test')
      this.#statistics?.addTestError(level - expectedLevel(signal, model.noise, scale));
    builder.append(this.#user, item, scale.minimum + level * scale.step, this.#time);
  }
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
  readonly #wanted: boolean;
  #time = 0;
  #pause = 0;

  /** Without `wanted` no times are drawn: all are 0. */
  constructor(seed: number, wanted = false) {
    this.#wanted = wanted;
    this.#random = new RandomStream(seed, purposes.times);
  }

  /** Starts the times of a user with this number of ratings. */
  aim(user: number, ratings: number): void {
    if (!this.#wanted) return;
    this.#random.aim(user);
    this.#time = FIRST + this.#random.nextUniform() * (LAST - FIRST);
    // All sessions together fit into the remaining time.
    const sittings = Math.max(1, 2 * SITTINGS * ratings);
    this.#pause = (LAST - this.#time) / sittings;
  }

  next(): number {
    if (!this.#wanted) return 0;
    const time = Math.floor(this.#time);
    const gap = -GAP * Math.log(this.#random.nextUniform());
    const pause = this.#random.nextUniform() < SITTINGS ? this.#random.nextUniform() * this.#pause : 0;
    this.#time = Math.min(LAST, this.#time + gap + pause);
    return time;
  }
}
