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
  /** Ratings of train and test, and the sum of squared errors; ratings by level; by item, of both parts. */
  readonly #counters: { totals: Float64Array; levels: Float64Array; items: Int32Array };

  constructor(preset: RatingPreset) {
    this.#preset = preset;
    const levels = new Float64Array(levelCount(preset.scale));
    this.#counters = { totals: new Float64Array(3), levels, items: new Int32Array(preset.items) };
  }

  get train(): number {
    return this.#counters.totals[0];
  }

  get test(): number {
    return this.#counters.totals[1];
  }

  get itemDegrees(): Int32Array {
    return this.#counters.items;
  }

  /** `signal`: the rating before noise and rounding, which gives the best predictor's error. */
  count(part: RatingPart, item: number, level: number, signal: number): void {
    const { totals, levels, items } = this.#counters;
    totals[part === 'train' ? 0 : 1]++;
    items[item]++;
    levels[level]++;
    if (part === 'train') return;
    const { model, scale } = this.#preset;
    const steps = level - expectedLevel(signal, model.noise, scale);
    totals[2] += Math.round((steps * steps) / ERROR_UNIT);
  }

  /** The counters as data for another thread, which `add` takes. */
  toPartition(): Partition {
    return { layout: 'rating-statistics', rows: this.train + this.test, columns: this.#counters };
  }

  /** Adds the counters of another range of the same data set. */
  add({ columns }: Partition): void {
    for (const [name, own] of Object.entries(this.#counters)) {
      const others = columns[name] as Float64Array | Int32Array;
      for (let i = 0; i < own.length; i++) own[i] += others[i];
    }
  }

  /**
   * RMSE of E[rating | planted signal] over the test ratings, in units of the rating: a model can only be
   * below it by luck.
   */
  get bestTestRmse(): number {
    return this.test === 0
      ? 0
      : Math.sqrt((this.#counters.totals[2] * ERROR_UNIT) / this.test) * this.#preset.scale.step;
  }

  /** Mean and standard deviation of all ratings. */
  get ratings(): { readonly mean: number; readonly deviation: number } {
    const { minimum, step } = this.#preset.scale;
    let count = 0;
    let sum = 0;
    let squares = 0;
    this.#counters.levels.forEach((n, level) => {
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
