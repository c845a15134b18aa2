import { computeDevice } from '../../engine/devices.ts';
import { DataError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { mapOrdered } from '../../engine/map-ordered.ts';
import type { ExecutionContext, Sink } from '../../engine/operator.ts';
import { startPhase } from '../../engine/phase.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import type { BatchStream } from '../../engine/stream.ts';
import { type FactorModel, placeFactors } from '../serving/factor-model.ts';
import { scorePairs } from '../serving/predict.ts';

export interface Evaluation {
  /** Root of the mean squared error and mean absolute error over the pairs that the model knows. */
  readonly rmse: number;
  readonly mae: number;
  /** Pairs in all. */
  readonly pairs: number;
  /** Pairs whose user or item the model doesn't know: counted here, never averaged in. */
  readonly coldPairs: number;
}

/** Compares a model's predictions with known ratings. Input: `user`, `item`, `rating`, as SelectRatings gives them. */
export class Evaluate implements Sink<Evaluation> {
  readonly name = 'evaluate';
  readonly #model: FactorModel;

  constructor(model: FactorModel) {
    this.#model = model;
  }

  describe(): JsonObject {
    return { rank: this.#model.rank };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async consume(input: BatchStream, ctx: ExecutionContext): Promise<Evaluation> {
    const { place, parallelism } = computeDevice(ctx.executor).info;
    const ratingAt = input.schema.fields.findIndex((field) => field.name === 'rating');
    const phase = startPhase(ctx.events, 'evaluate', 'pairs');
    let [squared, absolute, pairs, coldPairs] = [0, 0, 0, 0];
    await Holdings.within(ctx, async (held) => {
      const factors = await placeFactors(this.#model, place, held);
      const scored = mapOrdered(input, 2 * parallelism, async (batch) => {
        const score = await scorePairs(batch, { user: 'user', item: 'item' }, this.#model, factors, held);
        return { ...score, ratings: batch.data.children[ratingAt].values as Float32Array };
      });
      for await (const { predictions, ratings, warm } of scored) {
        pairs += predictions.length;
        coldPairs += predictions.length - warm.length;
        for (const i of warm) {
          const error = ratings[i] - predictions[i];
          squared += error * error;
          absolute += Math.abs(error);
        }
        phase.progress(pairs);
      }
    });
    phase.end(pairs);
    if (pairs === 0) throw new DataError('there are no pairs to evaluate', { phase: 'evaluate' });
    const known = pairs - coldPairs;
    return { rmse: Math.sqrt(squared / known), mae: absolute / known, pairs, coldPairs };
  }
}
