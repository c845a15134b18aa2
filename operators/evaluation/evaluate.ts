import { computeDevice } from '../../engine/run/devices.ts';
import { DataError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { startPhase } from '../../engine/phase.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { BAD_ROWS } from '../ratings/rows/bad-rows.ts';
import { type FactorModel, placeForPairs } from '../serving/factor-model.ts';
import { scorePairs } from '../serving/predict.ts';
import { coldWarnings, compareToMeans } from './model-warnings.ts';
import type { TrainingWarning } from './rating-warnings.ts';
import { type Baselines, BaselineSums, type DampedMeans, ErrorSums, type PairErrors } from './baselines.ts';
import { type ErrorBreakdown, ErrorCollector } from './error-bins.ts';

/** Errors on the pairs that the model knows; NaN if it knows none. */
export interface Evaluation extends PairErrors {
  /** Number of all pairs. */
  readonly pairs: number;
  /** Pairs whose user or item the model doesn't know; counted here, not included in the errors. */
  readonly coldPairs: number;
  /** Skipped rows with null, NaN or infinite values. */
  readonly badRows: number;
  /**
   * Errors on the same pairs if the means of the training ratings are predicted; absent if the model has no
   * such means, or knows no pair.
   */
  readonly baselines?: Baselines;
  /** Warnings about the model; each was an event too. */
  readonly warnings: readonly TrainingWarning[];
  /** Errors by properties of the pairs, if requested and the model knows a pair. */
  readonly breakdown?: ErrorBreakdown;
}

export interface EvaluateOptions {
  readonly means?: DampedMeans | undefined;
  /** True if the model has biases; used for advice. */
  readonly biases?: boolean;
  /**
   * Requests a breakdown of the errors. Its fields give the number of training ratings of each user and item,
   * by position, if known.
   */
  readonly breakdown?:
    | { readonly users?: ArrayLike<number> | undefined; readonly items?: ArrayLike<number> | undefined }
    | undefined;
}

/**
 * Compares a model's predictions with known ratings. Input: `user`, `item`, `rating`, such as from
 * SelectRatings.
 */
export class Evaluate implements Sink<Evaluation> {
  readonly name = 'evaluate';
  readonly #model: FactorModel;
  readonly #options: EvaluateOptions;

  constructor(model: FactorModel, options: EvaluateOptions = {}) {
    this.#model = model;
    this.#options = options;
  }

  describe(): JsonObject {
    return { rank: this.#model.rank };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async consume(input: BatchStream, ctx: ExecutionContext): Promise<Evaluation> {
    const phase = startPhase(ctx.events, 'evaluate', 'pairs');
    const measured = new MeasuredPairs(this.#options);
    await Holdings.within(ctx, async (held) => {
      for await (const scored of await this.#scored(input, held)) {
        measured.add(scored);
        phase.progress(measured.pairs);
      }
    });
    const { pairs, coldPairs } = measured;
    phase.end(pairs);
    if (pairs === 0) throw new DataError('there are no pairs to evaluate', { phase: 'evaluate' });
    const errors = measured.own.errors();
    const baselines =
      this.#options.means !== undefined && pairs > coldPairs ? measured.simple.baselines() : undefined;
    const breakdown = measured.collector?.breakdown();
    const warnings = this.#warnings(measured, errors.rmse, baselines, ctx);
    return {
      ...errors,
      pairs,
      coldPairs,
      badRows: ctx.metrics.get(BAD_ROWS)?.rows ?? 0,
      ...(baselines ? { baselines } : {}),
      warnings,
      ...(breakdown ? { breakdown } : {}),
    };
  }

  /** The pairs with the model's predictions, batch by batch. */
  async #scored(input: BatchStream, ctx: ExecutionContext): Promise<AsyncIterable<ScoredBatch>> {
    const { parallelism } = computeDevice(ctx.executor).info;
    const ratingAt = input.schema.fields.findIndex((field) => field.name === 'rating');
    const factors = await placeForPairs(this.#model, ctx);
    return mapOrdered(input, 2 * parallelism, async (batch) => {
      const score = await scorePairs(batch, { user: 'user', item: 'item' }, this.#model, factors, ctx);
      return { ...score, ratings: batch.data.children[ratingAt].values as Float32Array };
    });
  }

  /**
   * Warnings about cold pairs, then about a model that is worse than means. Each is also sent as an event.
   */
  #warnings(
    { pairs, coldPairs }: MeasuredPairs,
    testRmse: number,
    baselines: Baselines | undefined,
    { events }: ExecutionContext,
  ): TrainingWarning[] {
    const { biases = false } = this.#options;
    const verdict =
      baselines && Number.isFinite(testRmse) ? compareToMeans({ testRmse, baselines, biases }) : undefined;
    if (verdict) events({ type: 'warning', ...verdict });
    const cold = coldWarnings({ pairs, coldPairs });
    for (const { code, text } of cold) events({ type: 'warning', code, text });
    return [...cold, ...(verdict ? [verdict] : [])];
  }
}

type ScoredBatch = Awaited<ReturnType<typeof scorePairs>> & { readonly ratings: Float32Array };

/** Sums over the pairs so far. */
class MeasuredPairs {
  pairs = 0;
  coldPairs = 0;
  readonly own = new ErrorSums();
  /** Errors of the means. */
  readonly simple = new BaselineSums();
  readonly collector: ErrorCollector | undefined;
  readonly #means: DampedMeans | undefined;

  constructor({ means, breakdown }: EvaluateOptions) {
    this.#means = means;
    this.collector = breakdown && new ErrorCollector(breakdown);
  }

  add({ predictions, ratings, warm, users, items }: ScoredBatch): void {
    const means = this.#means;
    this.pairs += predictions.length;
    this.coldPairs += predictions.length - warm.length;
    for (let k = 0; k < warm.length; k++) {
      const rating = ratings[warm[k]];
      const prediction = predictions[warm[k]];
      const [user, item] = [users[k], items[k]];
      this.own.add(rating - prediction);
      if (means) this.simple.add(rating, means.mean, means.users[user], means.items[item]);
      const byMeans = means ? means.mean + means.users[user] + means.items[item] : Number.NaN;
      this.collector?.add(rating, prediction, byMeans, user, item);
    }
  }
}
