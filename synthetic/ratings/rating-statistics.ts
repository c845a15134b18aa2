import type { Partition } from '../../engine/partition.ts';
import type { RatingPart, RatingPreset } from '../preset.ts';
import { levelCount } from './planted-model.ts';

/** Squared errors, in squared steps of the scale, are summed as multiples of this. */
const ERROR_UNIT = 2 ** -16;

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
  readonly itemDegrees: Int32Array;
  #squaredErrors = 0;

  constructor(preset: RatingPreset) {
    this.#preset = preset;
    this.#levels = new Float64Array(levelCount(preset.scale));
    this.itemDegrees = new Int32Array(preset.items);
  }

  count(part: RatingPart, item: number, level: number): void {
    this[part]++;
    this.itemDegrees[item]++;
    this.#levels[level]++;
  }

  /** Error of the best predictor for one test rating, in steps of the scale. */
  addTestError(steps: number): void {
    this.#squaredErrors += Math.round((steps * steps) / ERROR_UNIT);
  }

  /** The counters as data for another thread; see `add`. */
  toPartition(): Partition {
    const totals = Float64Array.of(this.train, this.test, this.#squaredErrors);
    return { layout: 'rating-statistics', rows: this.train + this.test, columns: { totals, levels: this.#levels, items: this.itemDegrees } };
  }

  /** Adds what another range of the same data set counted. */
  add({ columns }: Partition): void {
    const { totals, levels, items } = columns as { totals: Float64Array; levels: Float64Array; items: Int32Array };
    this.train += totals[0];
    this.test += totals[1];
    this.#squaredErrors += totals[2];
    for (let i = 0; i < levels.length; i++) this.#levels[i] += levels[i];
    for (let i = 0; i < items.length; i++) this.itemDegrees[i] += items[i];
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
