import type { Partition } from '../../engine/partition.ts';
import type { RatingPart, RatingPreset } from '../preset.ts';
import { expectedLevel, levelCount } from './planted-model.ts';

/** Unit for the sum of squared errors, in squared steps of the scale. */
const ERROR_UNIT = 2 ** -16;

/**
 * Statistics of generated ratings as counters. All are integers, so that they do not depend on the division
 * into ranges or the order of sums.
 */
export class RatingStatistics {
  readonly #preset: RatingPreset;
  readonly #levels: Float64Array;
  train = 0;
  test = 0;
  /** Ratings by item id, both parts together. */
  readonly itemDegrees: Int32Array;
  #squaredErrors = 0;

  constructor(preset: RatingPreset) {
    this.#preset = preset;
    this.#levels = new Float64Array(levelCount(preset.scale));
    this.itemDegrees = new Int32Array(preset.items);
  }

  /** `signal`: the rating before noise and rounding, which gives the best predictor's error. */
  count(part: RatingPart, item: number, level: number, signal: number): void {
    this[part]++;
    this.itemDegrees[item]++;
    this.#levels[level]++;
    if (part === 'train') return;
    const { model, scale } = this.#preset;
    const steps = level - expectedLevel(signal, model.noise, scale);
    this.#squaredErrors += Math.round((steps * steps) / ERROR_UNIT);
  }

  /** The counters as data for another thread, which `add` takes. */
  toPartition(): Partition {
    const totals = Float64Array.of(this.train, this.test, this.#squaredErrors);
    return {
      layout: 'rating-statistics',
      rows: this.train + this.test,
      columns: { totals, levels: this.#levels, items: this.itemDegrees },
    };
  }

  /** Adds the counters of another range of the same data set. */
  add({ columns }: Partition): void {
    const { totals, levels, items } = columns as {
      totals: Float64Array;
      levels: Float64Array;
      items: Int32Array;
    };
    this.train += totals[0];
    this.test += totals[1];
    this.#squaredErrors += totals[2];
    for (let i = 0; i < levels.length; i++) this.#levels[i] += levels[i];
    for (let i = 0; i < items.length; i++) this.itemDegrees[i] += items[i];
  }

  /**
   * RMSE of E[rating | planted signal] over the test ratings, in units of the rating: a model can only be
   * below it by luck.
   */
  get bestTestRmse(): number {
    return this.test === 0
      ? 0
      : Math.sqrt((this.#squaredErrors * ERROR_UNIT) / this.test) * this.#preset.scale.step;
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
    return {
      mean: minimum + step * mean,
      deviation: step * Math.sqrt(Math.max(0, squares / count - mean * mean)),
    };
  }
}
