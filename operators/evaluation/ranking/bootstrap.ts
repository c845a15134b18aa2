import { CounterRandom } from '../../../engine/random.ts';

export type Interval = readonly [low: number, high: number];

/** Most users in one resample. */
const MOST_DRAWN = 10_000;

export interface BootstrapOptions {
  readonly resamples: number;
  readonly seed: number;
  /** Share of the resamples inside an interval, such as 0.95. */
  readonly confidence: number;
}

/**
 * Percentile bootstrap intervals of the means of several columns (Efron 1979): each resample draws rows with
 * replacement, the same rows for all columns. `values`: rows x columns, row-major. To save time, a resample
 * of more than 10,000 rows draws only 10,000, and its deviation from the mean is multiplied by √(10,000 /
 * rows) (the m out of n bootstrap). The same seed gives the same intervals.
 */
export function bootstrapIntervals(
  values: Float64Array,
  columns: number,
  means: Float64Array,
  { resamples, seed, confidence }: BootstrapOptions,
): Interval[] {
  const rows = values.length / columns;
  const drawn = Math.min(rows, MOST_DRAWN);
  const scale = Math.sqrt(drawn / rows);
  const deviations = Array.from({ length: columns }, () => new Float64Array(resamples));
  const sums = new Float64Array(columns);
  for (let b = 0; b < resamples; b++) {
    const random = new CounterRandom(seed, b);
    sums.fill(0);
    for (let i = 0; i < drawn; i++) {
      const at = columns * random.below(i, rows);
      for (let c = 0; c < columns; c++) sums[c] += values[at + c];
    }
    for (let c = 0; c < columns; c++) deviations[c][b] = scale * (sums[c] / drawn - means[c]);
  }
  const tail = (1 - confidence) / 2;
  return deviations.map((column, c) => {
    column.sort();
    return [means[c] + quantile(column, tail), means[c] + quantile(column, 1 - tail)];
  });
}

/** Quantile of sorted numbers, interpolated between the nearest two. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.min(sorted.length - 1, low + 1);
  return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}
