import { DataError } from '../../engine/errors.ts';
import { startPhase } from '../../engine/events.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import { columnOf } from '../dataflow/row-operator.ts';
import { BAD_ROWS } from '../ratings/rows/select-ratings.ts';
import type { FactorModel } from '../serving/factor-model.ts';
import { scoredBatches } from '../serving/predict.ts';
import { coldWarnings, compareToMeans, type TrainingWarning } from './model-warnings.ts';
import {
  type Baselines,
  BaselineSums,
  type DampedMeans,
  ErrorSums,
  isCold,
  type PairErrors,
  type RowCounts,
} from './rating-facts.ts';

type PartErrors = PairErrors & { readonly pairs: number };

/** Errors on the pairs that the model knows; NaN if it knows none. */
export interface Evaluation extends PairErrors {
  /** Number of all pairs. */
  readonly pairs: number;
  /**
   * Errors on pairs whose user and item have training ratings (warm), and on pairs whose user or item is known
   * by its attributes alone (cold). Absent if no pair is cold.
   */
  readonly warm?: PartErrors;
  readonly cold?: PartErrors;
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
  /** By position in the model, if known. */
  readonly counts?: RowCounts | undefined;
  /** Requests a breakdown of the errors. */
  readonly breakdown?: boolean | undefined;
}

/**
 * Compares a model's predictions with known ratings. Input: `user`, `item`, `rating`, such as from
 * SelectRatings.
 */
export function evaluate(
  model: FactorModel,
  { means, biases = false, counts = {}, breakdown: isBrokenDown }: EvaluateOptions = {},
): Sink<Evaluation> {
  return {
    name: 'evaluate',
    describe: () => ({ rank: model.rank }),
    requiredColumns: () => undefined,
    async consume(input, ctx) {
      const phase = startPhase(ctx.events, 'evaluate', 'pairs');
      const [own, simple] = [new ErrorSums(), new BaselineSums()];
      const [warmErrors, coldErrors] = [new ErrorSums(), new ErrorSums()];
      const collector = isBrokenDown ? new ErrorCollector(counts) : undefined;
      let [pairs, coldPairs] = [0, 0];
      await Holdings.within(ctx, async (held) => {
        const scored = await scoredBatches(input, { user: 'user', item: 'item' }, model, held);
        for await (const { batch, predictions, warm, users, items } of scored) {
          const ratings = columnOf(batch, 'rating').values as Float32Array;
          pairs += predictions.length;
          coldPairs += predictions.length - warm.length;
          for (let k = 0; k < warm.length; k++) {
            const rating = ratings[warm[k]];
            const prediction = predictions[warm[k]];
            const [user, item] = [users[k], items[k]];
            own.add(rating - prediction);
            (isCold(counts, user, item) ? coldErrors : warmErrors).add(rating - prediction);
            if (means) simple.add(rating, means.mean, means.users[user], means.items[item]);
            const byMeans = means ? means.mean + means.users[user] + means.items[item] : Number.NaN;
            collector?.add(rating, prediction, byMeans, user, item);
          }
          phase.progress(pairs);
        }
      });
      phase.end(pairs);
      if (pairs === 0) throw new DataError('there are no pairs to evaluate', { phase: 'evaluate' });
      const errors = own.errors();
      const baselines = means !== undefined && pairs > coldPairs ? simple.baselines() : undefined;
      const breakdown = collector?.breakdown();
      const verdict =
        baselines && Number.isFinite(errors.rmse)
          ? compareToMeans({ testRmse: errors.rmse, baselines, biases })
          : undefined;
      const cold = coldWarnings({ pairs, coldPairs });
      for (const { code, text } of [...(verdict ? [verdict] : []), ...cold])
        ctx.events({ type: 'warning', code, text });
      return {
        ...errors,
        pairs,
        ...(coldErrors.count > 0 && { warm: partErrors(warmErrors), cold: partErrors(coldErrors) }),
        coldPairs,
        badRows: ctx.metrics.get(BAD_ROWS)?.rows ?? 0,
        ...(baselines ? { baselines } : {}),
        warnings: [...cold, ...(verdict ? [verdict] : [])],
        ...(breakdown ? { breakdown } : {}),
      };
    },
  };
}

function partErrors(sums: ErrorSums): PartErrors {
  return { ...sums.errors(), pairs: sums.count };
}

/** A group of pairs, and the errors on them. */
type ErrorBin = {
  /** The range of the property by which pairs are grouped, both ends included. */
  readonly least: number;
  readonly most: number;
  readonly pairs: number;
  readonly rmse: number;
  /** Mean of rating minus prediction; positive if the model predicts too little. */
  readonly meanError: number;
  /** RMSE of damped means on the same pairs; absent if the model has none. */
  readonly dampedMeansRmse?: number;
};

/**
 * A group of pairs with similar predictions. In a calibrated model the mean prediction is near the mean
 * rating.
 */
type CalibrationBin = {
  readonly pairs: number;
  readonly predicted: number;
  readonly rated: number;
};

/** Errors of a model by properties of the pairs. Pairs with an unknown user or item are not included. */
type ErrorBreakdown = {
  /** By rating, or by ranges of ratings if there are more than 20 values. */
  readonly byRating: readonly ErrorBin[];
  /**
   * Groups by the number of training ratings of the pair's user, and of its item; absent if the model does
   * not know these numbers.
   */
  readonly byUserRatings?: readonly ErrorBin[];
  readonly byItemRatings?: readonly ErrorBin[];
  /** Ten groups of equal size, by prediction. */
  readonly calibration: readonly CalibrationBin[];
};

/** If ratings have more distinct values, they are grouped into ranges instead of one group for each value. */
const MOST_VALUES = 20;
const CALIBRATION_BINS = 10;

/**
 * Limit of memory: when this number of pairs is reached, every second one is dropped and only every 2nd (4th,
 * 8th, ...) further pair is kept.
 */
const MOST_PAIRS = 2 ** 20;

function binOf(count: number): number {
  return 31 - Math.clz32(count);
}

/** Sums of one bin, in float64. */
class Sums {
  least = Number.POSITIVE_INFINITY;
  most = Number.NEGATIVE_INFINITY;
  #pairs = 0;
  #squared = 0;
  #error = 0;
  #damped = 0;

  add(property: number, error: number, damped: number): void {
    this.least = Math.min(this.least, property);
    this.most = Math.max(this.most, property);
    this.#pairs++;
    this.#squared += error * error;
    this.#error += error;
    this.#damped += damped * damped;
  }

  bin(): ErrorBin {
    const [pairs, rmse] = [this.#pairs, (sum: number) => Math.sqrt(sum / this.#pairs)];
    return {
      least: this.least,
      most: this.most,
      pairs,
      rmse: rmse(this.#squared),
      meanError: this.#error / pairs,
      ...(Number.isNaN(this.#damped) ? {} : { dampedMeansRmse: rmse(this.#damped) }),
    };
  }
}

/**
 * Collects pairs of rating and prediction for a breakdown of the errors. `counts`: number of training ratings
 * of each user and item, by position in the model.
 */
export class ErrorCollector {
  readonly #counts: RowCounts;
  /** Rating, prediction, prediction by damped means, and ratings of the user and of the item. */
  #columns = Array.from({ length: 5 }, () => new Float64Array(1024));
  #kept = 0;
  #every = 1;
  #seen = 0;

  constructor(counts: RowCounts) {
    this.#counts = counts;
  }

  /** `damped`: prediction of damped means, NaN if there are none. */
  add(rating: number, prediction: number, damped: number, user: number, item: number): void {
    if (this.#seen++ % this.#every !== 0) return;
    if (this.#kept === this.#columns[0].length) this.#grow();
    const [ratings, predictions, byMeans, ofUser, ofItem] = this.#columns;
    const at = this.#kept++;
    ratings[at] = rating;
    predictions[at] = prediction;
    byMeans[at] = damped;
    ofUser[at] = this.#counts.users?.[user] ?? Number.NaN;
    ofItem[at] = this.#counts.items?.[item] ?? Number.NaN;
  }

  /** Undefined without pairs. */
  breakdown(): ErrorBreakdown | undefined {
    if (this.#kept === 0) return undefined;
    const { users, items } = this.#counts;
    const [ratings, , , ofUser, ofItem] = this.#columns;
    return {
      byRating: this.#bins(ratings, this.#ratingBin()),
      ...(users ? { byUserRatings: this.#bins(ofUser, binOf) } : {}),
      ...(items ? { byItemRatings: this.#bins(ofItem, binOf) } : {}),
      calibration: this.#calibration(),
    };
  }

  #grow(): void {
    if (this.#kept >= MOST_PAIRS) {
      for (const column of this.#columns) for (let k = 0; 2 * k < this.#kept; k++) column[k] = column[2 * k];
      this.#kept = Math.ceil(this.#kept / 2);
      this.#every *= 2;
      return;
    }
    this.#columns = this.#columns.map((column) => {
      const twice = new Float64Array(2 * column.length);
      twice.set(column);
      return twice;
    });
  }

  /** Returns the group of a rating: its own, or one of 20 ranges. */
  #ratingBin(): (rating: number) => number {
    const ratings = this.#columns[0].subarray(0, this.#kept);
    const values = new Set<number>();
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const rating of ratings) {
      if (values.size <= MOST_VALUES) values.add(rating);
      least = Math.min(least, rating);
      most = Math.max(most, rating);
    }
    if (values.size > MOST_VALUES)
      return (rating) =>
        Math.min(MOST_VALUES - 1, Math.floor((MOST_VALUES * (rating - least)) / (most - least)));
    const order = new Map([...values].sort((a, b) => a - b).map((value, at) => [value, at]));
    return (rating) => order.get(rating) ?? 0;
  }

  #bins(properties: Float64Array, bin: (property: number) => number): ErrorBin[] {
    const [ratings, predictions, damped] = this.#columns;
    const sums = new Map<number, Sums>();
    for (let k = 0; k < this.#kept; k++) {
      const at = bin(properties[k]);
      let own = sums.get(at);
      if (own === undefined) sums.set(at, (own = new Sums()));
      own.add(properties[k], ratings[k] - predictions[k], ratings[k] - damped[k]);
    }
    return [...sums].sort(([a], [b]) => a - b).map(([, own]) => own.bin());
  }

  #calibration(): CalibrationBin[] {
    const [ratings, predictions] = this.#columns;
    const order = Uint32Array.from({ length: this.#kept }, (_, k) => k).sort(
      (a, b) => predictions[a] - predictions[b] || a - b,
    );
    const bins: CalibrationBin[] = [];
    for (let bin = 0; bin < CALIBRATION_BINS; bin++) {
      const own = order.subarray(
        Math.floor((bin * order.length) / CALIBRATION_BINS),
        Math.floor(((bin + 1) * order.length) / CALIBRATION_BINS),
      );
      if (own.length === 0) continue;
      const mean = (column: Float64Array) => own.reduce((sum, k) => sum + column[k], 0) / own.length;
      bins.push({ pairs: own.length, predicted: mean(predictions), rated: mean(ratings) });
    }
    return bins;
  }
}
