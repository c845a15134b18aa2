import { setImmediate as eventLoopTurn } from 'node:timers/promises';
import type { RecordBatch, Schema } from 'apache-arrow';
import { throwIfAborted, UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import type { Source, SourceStatistics } from '../engine/stream/operator.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { type BatchStream, batchStream } from '../engine/stream/stream.ts';
import type { RatingPart, RatingPreset } from './preset.ts';
import { ratingSchema } from './ratings/rating-batch.ts';
import { generateRatings } from './ratings/rating-generator.ts';
import {
  buildRatingTables,
  checkSeed,
  ratingsOf,
  type RatingTables,
  type UserRange,
} from './ratings/rating-tables.ts';

export interface SyntheticSourceOptions {
  readonly preset: RatingPreset;
  /** An integer from 0 below 2^53. Default 0. */
  readonly seed?: number;
  readonly part: RatingPart;
  /** Default: all users. The concatenated streams of adjacent ranges equal the stream of the whole. */
  readonly users?: UserRange;
  /** Rows of a full batch. Default 65,536. */
  readonly batchSize?: number;
}

/**
 * One part of a synthetic data set, generated while it is read: {user: int32, item: int32, rating: float32},
 * grouped by user. Every execution gives the same batches.
 */
export class SyntheticSource implements Source {
  readonly name = 'synthetic-source';
  readonly phase = 'read';
  readonly replayable = true;
  readonly #options: SyntheticSourceOptions;
  readonly #seed: number;
  #tables: RatingTables | undefined;

  /** @throws UsageError for an impossible seed, range of users or size of batches. */
  constructor(options: SyntheticSourceOptions) {
    const { preset, users, batchSize = 1 } = options;
    if (users && !(users.first >= 0 && users.first <= users.end && users.end <= preset.users)) {
      throw new UsageError(`users ${users.first}..${users.end} are not within 0..${preset.users}`, {
        phase: 'generate',
      });
    }
    if (!Number.isInteger(batchSize) || batchSize < 1)
      throw new UsageError(`batchSize is ${batchSize}, not a positive integer`, { phase: 'generate' });
    this.#options = options;
    this.#seed = checkSeed(options.seed ?? 0);
  }

  describe(): JsonObject {
    const { preset, part, users } = this.#options;
    return {
      preset: preset.name,
      users: preset.users,
      items: preset.items,
      rows: preset[part],
      part,
      seed: this.#seed,
      range: users && [users.first, users.end],
    };
  }

  async schema(): Promise<Schema> {
    return ratingSchema;
  }

  /** The exact number of rows; no bytes are stored. */
  async statistics(): Promise<SourceStatistics> {
    return { rows: ratingsOf(this.#prepare(), this.#options.part, this.#options.users), bytes: 0, files: 0 };
  }

  async execute(ctx: Pick<ExecutionContext, 'signal'>): Promise<BatchStream> {
    throwIfAborted(ctx.signal, 'generate');
    return batchStream(ratingSchema, this.#batches(this.#prepare(), ctx.signal));
  }

  async *#batches(tables: RatingTables, signal: AbortSignal): AsyncGenerator<RecordBatch> {
    const { users, part, batchSize } = this.#options;
    for (const { batch } of generateRatings(tables, { users, batchSize, parts: [part] })) {
      throwIfAborted(signal, 'generate');
      yield batch;
      // Generation never waits, so a signal could not fire without this turn of the event loop.
      await eventLoopTurn();
    }
  }

  #prepare(): RatingTables {
    return (this.#tables ??= buildRatingTables(this.#options.preset, this.#seed));
  }
}
