/** A group of pairs, and the errors on them. */
export type ErrorBin = {
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
export type CalibrationBin = {
  readonly pairs: number;
  readonly predicted: number;
  readonly rated: number;
};

/** Errors of a model by properties of the pairs. Pairs with an unknown user or item are not included. */
export type ErrorBreakdown = {
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
  readonly #counts: Readonly<Record<'users' | 'items', ArrayLike<number> | undefined>>;
  #ratings = new Float64Array(1024);
  #predictions = new Float64Array(1024);
  #damped = new Float64Array(1024);
  #ofUser = new Float64Array(1024);
  #ofItem = new Float64Array(1024);
  #kept = 0;
  #every = 1;
  #seen = 0;

  constructor(counts: {
    readonly users?: ArrayLike<number> | undefined;
    readonly items?: ArrayLike<number> | undefined;
  }) {
    this.#counts = { users: counts.users, items: counts.items };
  }

  /** `damped`: prediction of damped means, NaN if there are none. */
  add(rating: number, prediction: number, damped: number, user: number, item: number): void {
    if (this.#seen++ % this.#every !== 0) return;
    if (this.#kept === this.#ratings.length) this.#grow();
    const at = this.#kept++;
    this.#ratings[at] = rating;
    this.#predictions[at] = prediction;
    this.#damped[at] = damped;
    this.#ofUser[at] = this.#counts.users?.[user] ?? Number.NaN;
    this.#ofItem[at] = this.#counts.items?.[item] ?? Number.NaN;
  }

  /** Undefined without pairs. */
  breakdown(): ErrorBreakdown | undefined {
    if (this.#kept === 0) return undefined;
    const { users, items } = this.#counts;
    return {
      byRating: this.#bins(this.#ratings, this.#ratingBin()),
      ...(users ? { byUserRatings: this.#bins(this.#ofUser, binOf) } : {}),
      ...(items ? { byItemRatings: this.#bins(this.#ofItem, binOf) } : {}),
      calibration: this.#calibration(),
    };
  }

  #grow(): void {
    if (this.#kept >= MOST_PAIRS) {
      for (const column of [this.#ratings, this.#predictions, this.#damped, this.#ofUser, this.#ofItem]) {
        for (let k = 0; 2 * k < this.#kept; k++) column[k] = column[2 * k];
      }
      this.#kept = Math.ceil(this.#kept / 2);
      this.#every *= 2;
      return;
    }
    const longer = (column: Float64Array) => {
      const twice = new Float64Array(2 * column.length);
      twice.set(column);
      return twice;
    };
    [this.#ratings, this.#predictions, this.#damped, this.#ofUser, this.#ofItem] = [
      longer(this.#ratings),
      longer(this.#predictions),
      longer(this.#damped),
      longer(this.#ofUser),
      longer(this.#ofItem),
    ];
  }

  /** Returns the group of a rating: its own, or one of 20 ranges. */
  #ratingBin(): (rating: number) => number {
    const ratings = this.#ratings.subarray(0, this.#kept);
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
    const sums = new Map<number, Sums>();
    for (let k = 0; k < this.#kept; k++) {
      const at = bin(properties[k]);
      let own = sums.get(at);
      if (own === undefined) sums.set(at, (own = new Sums()));
      own.add(properties[k], this.#ratings[k] - this.#predictions[k], this.#ratings[k] - this.#damped[k]);
    }
    return [...sums].sort(([a], [b]) => a - b).map(([, own]) => own.bin());
  }

  #calibration(): CalibrationBin[] {
    const order = Uint32Array.from({ length: this.#kept }, (_, k) => k).sort(
      (a, b) => this.#predictions[a] - this.#predictions[b] || a - b,
    );
    const bins: CalibrationBin[] = [];
    for (let bin = 0; bin < CALIBRATION_BINS; bin++) {
      const own = order.subarray(
        Math.floor((bin * order.length) / CALIBRATION_BINS),
        Math.floor(((bin + 1) * order.length) / CALIBRATION_BINS),
      );
      if (own.length === 0) continue;
      const mean = (column: Float64Array) => own.reduce((sum, k) => sum + column[k], 0) / own.length;
      bins.push({ pairs: own.length, predicted: mean(this.#predictions), rated: mean(this.#ratings) });
    }
    return bins;
  }
}
