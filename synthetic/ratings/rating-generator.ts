import type { RecordBatch } from 'apache-arrow';
import { type RatingPart, ratingParts } from '../preset.ts';
import { ItemSampler } from './item-sampler.ts';
import { expectedLevel, PlantedUser } from './planted-model.ts';
import { purposes, RandomStream } from './random-stream.ts';
import { RatingBatchBuilder } from './rating-batch.ts';
import { RatingTimes } from './rating-times.ts';
import type { RatingStatistics } from './rating-statistics.ts';
import { degreeOf, type RatingTables, testDegreeOf, type UserRange } from './rating-tables.ts';

export interface GenerateOptions {
  /** Default: all users. */
  readonly users?: UserRange;
  /** Default: both. Ratings of the other part cost only the draw of their items. */
  readonly parts?: readonly RatingPart[];
  /** Rows of a full batch. Default 65,536. */
  readonly batchSize?: number;
  /** Adds the column `timestamp` (see RatingTimes). */
  readonly timestamps?: boolean;
  /** Counters of the generated ratings. */
  readonly statistics?: RatingStatistics;
}

export interface PartBatch {
  readonly part: RatingPart;
  /** {user: int32, item: int32, rating: float32[, timestamp: int64]} */
  readonly batch: RecordBatch;
  /** Ratings so far, with this batch. */
  readonly rowsSoFar: number;
}

/**
 * The ratings of a range of users as batches of both parts, in one pass.
 *
 * Contract: a rating depends on preset, seed, user and its position among the user's ratings alone, so the
 * batches of adjacent ranges, one after the other, hold the same rows as those of the whole. Users come in id
 * order, a user's ratings in the order drawn; a user's items are all different. Memory is that of one batch a
 * part and some arrays of users or items, for any number of ratings.
 *
 */
export function* generateRatings(
  tables: RatingTables,
  options: GenerateOptions = {},
): Generator<PartBatch, void, undefined> {
  const { preset, seed } = tables;
  const { first, end } = options.users ?? { first: 0, end: preset.users };
  const { statistics, parts = ratingParts, batchSize = 65_536, timestamps } = options;
  const { scale, model } = preset;
  const builder = () => new RatingBatchBuilder(batchSize, timestamps);
  const builders = { train: builder(), test: builder() };
  const times = new RatingTimes(seed, timestamps);
  const wanted = { train: parts.includes('train'), test: parts.includes('test') };
  const sampler = new ItemSampler(tables.items);
  const planted = new PlantedUser(preset, seed, tables.planted);
  const draws = new RandomStream(seed, purposes.itemsOfUser);
  const split = new RandomStream(seed, purposes.split);
  const items = new Int32Array(preset.items);
  let rowsSoFar = 0;

  for (let user = first; user < end; user++) {
    const degree = degreeOf(tables, user);
    let testLeft = testDegreeOf(tables, user);
    if (!wanted.train && testLeft === 0) continue;
    sampler.sample(degree, draws.aim(user), items);
    planted.aim(user);
    split.aim(user);
    times.aim(user, degree);
    for (let n = 0; n < degree; n++) {
      // Selection sampling: all remaining ratings are equally likely to be among the remaining test ratings.
      const part = split.nextUniform() * (degree - n) < testLeft ? 'test' : 'train';
      if (part === 'test') testLeft--;
      const time = times.next();
      if (!wanted[part]) continue;
      const item = items[n];
      const signal = planted.signal(item);
      const level = planted.level(n, signal);
      if (statistics) {
        statistics.count(part, item, level);
        if (part === 'test') statistics.addTestError(level - expectedLevel(signal, model.noise, scale));
      }
      const builder = builders[part];
      builder.append(user, item, scale.minimum + level * scale.step, time);
      if (builder.full) {
        rowsSoFar += batchSize;
        yield { part, batch: builder.take(), rowsSoFar };
      }
    }
  }
  for (const part of ratingParts) {
    const { rows } = builders[part];
    if (rows === 0) continue;
    rowsSoFar += rows;
    yield { part, batch: builders[part].take(), rowsSoFar };
  }
}
