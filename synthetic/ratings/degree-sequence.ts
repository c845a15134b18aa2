import { UsageError } from '../../engine/errors.ts';
import type { UserDegrees } from '../preset.ts';

/** Most halvings, enough to find a positive float64 to its last bits. */
const BISECTION_STEPS = 200;

/** Number of terms at the steep end of a sum that are added one by one. */
const ADDED = 4096;

/**
 * The numbers of ratings of `count` users, ascending, with the exact sum `total`.
 *
 * Number r is the quantile at (r + 1/2) / count of the truncated Lomax distribution described at
 * `UserDegrees`. Its scale s is found by bisection so that the quantiles sum to the total, and rounding
 * errors do not accumulate.
 *
 * @throws UsageError if no scale reaches the total: its mean must be above the minimum and below the middle
 * of the range.
 */
export function degreeSequence(count: number, total: number, shape: UserDegrees): Int32Array {
  const { minimum, maximum } = shape;
  const mean = total / count;
  if (mean < minimum || mean > (minimum + maximum) / 2) {
    throw new UsageError(
      `${total} ratings of ${count} users are ${mean} each, outside ${minimum}..${(minimum + maximum) / 2}`,
      {
        phase: 'generate',
        advice: 'Change the totals or the degrees of the preset',
      },
    );
  }
  const scale = solveScale(count, total, shape);
  const degrees = new Int32Array(count);
  let exact = 0;
  let given = 0;
  for (let r = 0; r < count; r++) {
    exact += quantile((r + 0.5) / count, scale, shape);
    const upTo = r === count - 1 ? total : Math.round(exact);
    degrees[r] = upTo - given;
    given = upTo;
  }
  return degrees;
}

/**
 * The scale that gives the total. Sums increase with the scale, from `minimum` each towards the mean of the
 * uniform distribution.
 */
function solveScale(count: number, total: number, shape: UserDegrees): number {
  let low = 0;
  let high = 1;
  while (sumOfQuantiles(count, high, shape) < total && high < 2 ** 60) high *= 2;
  for (let step = 0; step < BISECTION_STEPS; step++) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    const sum = sumOfQuantiles(count, middle, shape);
    if (Math.abs(sum - total) < 0.01) return middle;
    if (sum < total) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * Σ quantile((r + 1/2) / count) over r < count, without a loop over all users. With h = (1 - beyond) / count,
 *
 *     sum = count (minimum - s) + s Σ x_r^-k,   x_r = 1 - (r + 1/2) h,   k = 1 / exponent
 *
 * The last ADDED terms, where the power is steep, are added one by one. The others are at the middles of
 * cells of width h that fill y..1, where y >= ADDED h; their sum is an integral and a first correction
 * (Euler-Maclaurin formula), accurate to 1e-14 of the sum.
 */
function sumOfQuantiles(count: number, s: number, { minimum, maximum, exponent }: UserDegrees): number {
  const k = 1 / exponent;
  const beyond = Math.pow(1 + (maximum - minimum) / s, -exponent);
  const h = (1 - beyond) / count;
  const added = Math.min(count, ADDED);
  let sum = 0;
  for (let r = count - added; r < count; r++) sum += Math.pow(1 - (r + 0.5) * h, -k);
  if (added < count) {
    const y = 1 - (count - added) * h;
    const integral = k === 1 ? -Math.log(y) : (1 - Math.pow(y, 1 - k)) / (1 - k);
    sum += integral / h - (h / 24) * k * (Math.pow(y, -k - 1) - 1);
  }
  return count * (minimum - s) + s * sum;
}

/** x with P(X <= x) = p, where P(X > x) ~ (1 + (x - minimum) / s)^-a below the maximum. */
function quantile(p: number, s: number, { minimum, maximum, exponent: a }: UserDegrees): number {
  if (s === 0) return minimum;
  const beyond = Math.pow(1 + (maximum - minimum) / s, -a);
  return Math.min(maximum, minimum + s * (Math.pow(1 - p * (1 - beyond), -1 / a) - 1));
}
