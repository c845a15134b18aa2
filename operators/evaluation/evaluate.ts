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
import { coldWarnings } from './cold-test.ts';
import { compareToMeans } from './compare-to-means.ts';
import type { TrainingWarning } from './rating-warnings.ts';
import { type Baselines, BaselineSums, type DampedMeans, ErrorSums, type PairErrors } from './baselines.ts';
import { type ErrorBreakdown, ErrorCollector } from './error-bins.ts';

/** The errors are over the pairs that the model knows; NaN where it knows none. */
export interface Evaluation extends PairErrors {
  /** Pairs in all. */
  readonly pairs: number;
  /** Pairs whose user or item the model doesn't know: counted here, never averaged in. */
  readonly coldPairs: number;
  /** Rows with null, NaN or infinite values that were left out. */
  readonly badRows: number;
  /**
   * Errors of the training ratings' means over the same pairs; absent where the model has no such means, or
   * knows no pair.
   */
  readonly baselines?: Baselines;
  /** Warnings about the model; each was an event too. */
  readonly warnings: readonly TrainingWarning[];
  /** The errors by properties of the pairs, where that was asked for and the model knows a pair. */
  readonly breakdown?: ErrorBreakdown;
}

export interface EvaluateOptions {
  readonly means?: DampedMeans | undefined;
  /** True where the model has biases, for advice. */
  readonly biases?: boolean;
  /**
   * Asks for a breakdown of the errors. Training ratings of each user and item, by position, where they are
   * known.
   */
  readonly breakdown?:
    | { readonly users?: ArrayLike<number> | undefined; readonly items?: ArrayLike<number> | undefined }
    | undefined;
}

/**
 * Compares a model's predictions with known ratings. Input: `user`, `item`, `rating`, as SelectRatings gives
 * them.
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
    const { parallelism } = computeDevice(ctx.executor).info;
    const ratingAt = input.schema.fields.findIndex((field) => field.name === 'rating');
    const phase = startPhase(ctx.events, 'evaluate', 'pairs');
    const { means, biases = false } = this.#options;
    const collector = this.#options.breakdown && new ErrorCollector(this.#options.breakdown);
    const [own, simple] = [new ErrorSums(), new BaselineSums()];
    let [pairs, coldPairs] = [0, 0];
    await Holdings.within(ctx, async (held) => {
      const factors = await placeForPairs(this.#model, held);
      const scored = mapOrdered(input, 2 * parallelism, async (batch) => {
        const score = await scorePairs(batch, { user: 'user', item: 'item' }, this.#model, factors, held);
        return { ...score, ratings: batch.data.children[ratingAt].values as Float32Array };
      });
      for await (const { predictions, ratings, warm, users, items } of scored) {
        pairs += predictions.length;
        coldPairs += predictions.length - warm.length;
        for (let k = 0; k < warm.length; k++) {
          const rating = ratings[warm[k]];
          const prediction = predictions[warm[k]];
          own.add(rating - prediction);
          if (means) simple.add(rating, means.mean, means.users[users[k]], means.items[items[k]]);
          collector?.add(
            rating,
            prediction,
            means ? means.mean + means.users[users[k]] + means.items[items[k]] : Number.NaN,
            users[k],
            items[k],
          );
        }
        phase.progress(pairs);
      }
    });
    phase.end(pairs);
    if (pairs === 0) throw new DataError('there are no pairs to evaluate', { phase: 'evaluate' });
    const errors = own.errors();
    const baselines = means !== undefined && pairs > coldPairs ? simple.baselines() : undefined;
    const verdict =
      baselines && Number.isFinite(errors.rmse)
        ? compareToMeans({ testRmse: errors.rmse, baselines, biases })
        : undefined;
    if (verdict) ctx.events({ type: 'warning', ...verdict });
    const cold = coldWarnings({ pairs, coldPairs });
    for (const { code, text } of cold) ctx.events({ type: 'warning', code, text });
    const breakdown = collector?.breakdown();
    return {
      ...errors,
      pairs,
      coldPairs,
      badRows: ctx.metrics.get(BAD_ROWS)?.rows ?? 0,
      ...(baselines ? { baselines } : {}),
      warnings: [...cold, ...(verdict ? [verdict] : [])],
      ...(breakdown ? { breakdown } : {}),
    };
  }
}
