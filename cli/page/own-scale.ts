/** A reference line across a chart, such as the error of means. */
export interface Rule {
  readonly name: string;
  readonly value: number;
}

/** The range of values that a chart shows. */
export interface OwnScale {
  readonly domain: readonly [least: number, most: number];
  /** False for values outside the range, which would flatten the others. */
  readonly has: (value: number) => boolean;
}

/** Rules widen a scale by at most this factor of its range. */
const MOST_WIDER = 2;

/** If values differ by less than this fraction, the chart shows the difference as small. */
const LEAST_PART = 0.01;

/**
 * Least margin, for example if all values are zero: a range near the smallest float would have infinitely
 * many ticks.
 */
const LEAST_MARGIN = 1e-9;

/** With fewer values than this, all are shown. */
const FEW = 4;

/**
 * A scale on which the course of the values is visible: the first value and rules are included only if they
 * are near the others.
 */
export function ownScale(values: readonly number[], rules: readonly Rule[] = []): OwnScale {
  const main = values.length < FEW ? values : values.slice(1);
  let [least, most] = [Math.min(...main), Math.max(...main)];
  const room = MOST_WIDER * Math.max(most - least, LEAST_PART * Math.abs(most));
  const [low, high] = [least - room, most + room];
  for (const value of [...values, ...rules.map((rule) => rule.value)]) {
    if (!(value >= low && value <= high)) continue;
    [least, most] = [Math.min(least, value), Math.max(most, value)];
  }
  const margin = Math.max(
    0.06 * (most - least),
    (LEAST_PART * Math.abs(most) - (most - least)) / 2,
    LEAST_MARGIN,
  );
  return { domain: [least - margin, most + margin], has: (value) => value >= least && value <= most };
}
