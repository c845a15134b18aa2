import { levelCount } from './planted-model.ts';
import type { RatingPreset } from './preset.ts';

/** Squared errors, in squared steps of the scale, are summed as multiples of this. */
const ERROR_UNIT = 2 ** -16;

/** Least, middle, mean and most ratings of the users or items that have any; `rated` is how many do. */
export interface DegreeSummary {
  readonly rated: number;
  readonly minimum: number;
  readonly median: number;
  readonly mean: number;
  readonly maximum: number;
}

/**
 * What was generated, in counters only: all are integers, so that the sums of any cut into ranges, added in any
 * order, are the same.
 */
export class RatingStatistics {
  readonly #preset: RatingPreset;
  readonly #levels: Float64Array;
  train = 0;
  test = 0;
  /** By id, both parts together. */
  readonly userDegrees: Int32Array;
  readonly itemDegrees: Int32Array;
  #squaredErrors = 0;

  constructor(preset: RatingPreset) {
    this.#preset = preset;
    this.#levels = new Float64Array(levelCount(preset.scale));
    this.userDegrees = new Int32Array(preset.users);
    this.itemDegrees = new Int32Array(preset.items);
  }

  count(user: number, item: number, level: number): void {
    this.userDegrees[user]++;
    this.itemDegrees[item]++;
    this.#levels[level]++;
  }

  /** Error of the best predictor for one test rating, in steps of the scale. */
  addTestError(steps: number): void {
    this.#squaredErrors += Math.round((steps * steps) / ERROR_UNIT);
  }

  /** Adds what another range of the same data set counted. */
  add(other: RatingStatistics): void {
    this.train += other.train;
    this.test += other.test;
    this.#squaredErrors += other.#squaredErrors;
    for (let i = 0; i < this.#levels.length; i++) this.#levels[i] += other.#levels[i];
    for (let i = 0; i < this.userDegrees.length; i++) this.userDegrees[i] += other.userDegrees[i];
    for (let i = 0; i < this.itemDegrees.length; i++) this.itemDegrees[i] += other.itemDegrees[i];
  }

  /** RMSE over the test ratings of E[rating | planted signal], in units of the rating: what no model can beat but by luck. */
  get bestTestRmse(): number {
    return this.test === 0 ? 0 : Math.sqrt((this.#squaredErrors * ERROR_UNIT) / this.test) * this.#preset.scale.step;
  }

  /** Mean and standard deviation of all ratings. */
  get ratings(): { readonly mean: number; readonly deviation: number } {
    const { minimum, step } = this.#preset.scale;
    let count = 0;
    let sum = 0;
    let squares = 0;
    this.#levels.forEach((n, level) => {
      count += n;
      sum += n * level;
      squares += n * level * level;
    });
    if (count === 0) return { mean: 0, deviation: 0 };
    const mean = sum / count;
    return { mean: minimum + step * mean, deviation: step * Math.sqrt(Math.max(0, squares / count - mean * mean)) };
  }
}

export function summarizeDegrees(degrees: Int32Array): DegreeSummary {
  const sorted = degrees.filter((degree) => degree > 0).sort();
  const rated = sorted.length;
  if (rated === 0) return { rated, minimum: 0, median: 0, mean: 0, maximum: 0 };
  let sum = 0;
  for (const degree of sorted) sum += degree;
  const median = (sorted[(rated - 1) >> 1] + sorted[rated >> 1]) / 2;
  return { rated, minimum: sorted[0], median, mean: sum / rated, maximum: sorted[rated - 1] };
}
