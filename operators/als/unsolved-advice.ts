import type { RatingBlock } from '../ratings/rating-block.ts';
import { implicitWeights } from './implicit/weights.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';

/** The numbers that decide whether the equations of a row can be solved in float32. */
export interface RowSizes {
  readonly params: SizedAlsParams;
  /** The number by which ratings are divided in training, and λ with them: see ratingUnit. */
  readonly unit: number;
  /** Number of ratings of the row. */
  readonly count: number;
  /** The largest |r| of the row in training; 0 if it is not known. */
  readonly largest: number;
}

/** Squares of larger numbers, and their sums, come near the end of float32. */
const LARGE = 1e15;
const LARGE_SUM = 1e10;

/** Below this, relative to the largest weight of a rating, float32 may lose λ beside A. */
const SMALL = 1e-6;

/** Advice for a row whose equations have no finite solution, by the cause that its numbers show. */
export function unsolvedAdvice({ params, unit, count, largest }: RowSizes): string {
  const { regParam, implicitPrefs } = params;
  const lambda = regParam / unit;
  const alpha = implicitPrefs ? implicitWeights(params).alpha : 1;
  const weight = Math.max(1, alpha * largest);
  if (isTooLarge(lambda) && !isTooLarge(regParam) && largest > 0)
    return `Scale the ratings up, of which this row's largest is ${largest * unit}, or lower regParam (λ), which is ${regParam}`;
  if (isTooLarge(lambda)) return `Lower regParam (λ), which is ${regParam}`;
  if (count * weight > LARGE_SUM)
    return `Scale the ratings down, of which this row's largest is ${largest * unit}`;
  if (lambda < SMALL * weight) return `Raise regParam (λ), which is ${regParam}`;
  if (largest === 0) return `Raise regParam (λ), which is ${regParam}, or scale the ratings down`;
  return (
    `Neither regParam (λ), which is ${regParam}, nor the ratings, of which this row's largest is ` +
    `${largest * unit}, explain it: try solver cholesky or device cpu, and report it as a bug`
  );
}

/** True if λ, in the unit of training, leaves no room for products in float32. */
export function isTooLarge(lambda: number): boolean {
  return lambda > LARGE;
}

/** The largest |r| of a row of a block in memory; 0 if its ratings are elsewhere. */
export function largestOfRow(
  { offsets, values }: Pick<RatingBlock, 'offsets' | 'values'>,
  row: number,
): number {
  return values
    .subarray(offsets[row], offsets[row + 1])
    .reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
}
