import { sharedArray } from '../../engine/partition.ts';
import type { StepResults } from '../../engine/run/run-steps.ts';
import { DAMPING } from '../evaluation/rating-facts.ts';
import type { RatingBlock, Ratings } from '../ratings/ratings.ts';
import type { SideNorms, TrainingErrors } from '../training/loss.ts';
import type { SizedAlsParams } from './als-params.ts';
import { implicitWeights } from './implicit/weights.ts';
import type { RatingLevel } from './rating-unit.ts';

/**
 * Above this ratio of Σ r² to Σ e², the error is not computed from the solve's objective: cancellation in
 * float32 (or in float16 A and b) is too large, and a pass over the ratings computes it.
 */
export const MOST_CANCELLED = 100;

/**
 * The objective of the users, Σ xᵀA x - 2 bᵀx over all users, from the values of the tasks that solved them.
 * It includes the users' penalty, which is part of A. NaN if a task did not report it.
 */
export function solvedObjective(round: StepResults): number {
  const values = (['update', 'update-implicit', 'solve-equations'] as const).flatMap((kernel) =>
    round.byPart('update-users', kernel, 'factors').flat(),
  );
  return sumOfObjectives(values);
}

/** The objective of a task's rows, as one number or, with rows in groups, one for each group. */
export interface ReportedObjective {
  readonly objective?: unknown;
  readonly objectives?: unknown;
}

/** Adds up the objectives that tasks reported for their rows. NaN if a task did not, or without tasks. */
export function sumOfObjectives(values: readonly ReportedObjective[]): number {
  if (values.length === 0) return NaN;
  // Objectives of long rows that are solved in groups are added separately. A part's values begin with its
  // groups, and the order of summation must not depend on the number of parts.
  let [inGroups, others] = [0, 0];
  for (const { objective = NaN, objectives } of values) {
    if (objectives === undefined) others += objective as number;
    else for (const one of objectives as readonly number[]) inGroups += one;
  }
  return inGroups + others;
}

/**
 * The sum T_v = Σ (r - μ) of each item's ratings, in shared memory. It is computed from the damped means T_v
 * / (n_v + 25), which are already known.
 */
export function itemTotals(byItem: Ratings, { columns }: Pick<RatingLevel, 'columns'>): Float32Array {
  const totals = sharedArray(Float32Array, byItem.rows);
  for (const { from, rows, offsets } of byItem.parts) {
    for (let row = 0; row < rows; row++)
      totals[from + row] = columns[from + row] * (offsets[row + 1] - offsets[row] + DAMPING.items);
  }
  return totals;
}

/**
 * Computes Σ (r - μ - γ_v)² over all ratings, to which the users' objective is added to get the squared
 * error. Σ (r - μ)² is computed once; the items' biases γ_v are included by sums over items:
 *
 *     Σ (r - μ)² + Σ n_v γ_v² - 2 Σ T_v γ_v
 *
 * Without biases it is Σ r². `mean`: μ, or 0 without biases. `items`: sums over the items' biases; undefined
 * without biases.
 */
export function squaresForObjective(
  ratings: number,
  { mean, deviation }: Pick<RatingLevel, 'mean' | 'deviation'>,
  items: Pick<SideNorms, 'biasSum' | 'biasAlong' | 'biasSquares'> | undefined,
): number {
  const apart = ratings * deviation ** 2;
  if (items === undefined) return apart + ratings * mean ** 2;
  const { biasSquares = items.biasSum, biasAlong } = items;
  return apart + biasSquares - 2 * biasAlong;
}

/**
 * Computes loss and training RMSE without a pass over the ratings. `squares` is the result of
 * squaresForObjective. `objective` is the users' objective, which includes the users' penalty, but not the
 * items'. The result includes the errors of `tests`. Returns undefined if cancellation leaves too few digits.
 */
export function solvedErrors(
  objective: number,
  squares: number,
  penalty: Readonly<Record<'users' | 'items', number>>,
  ratings: number,
  unit: number,
  tests: Pick<TrainingErrors, 'testRmse' | 'testMae'>,
): TrainingErrors | undefined {
  const squared = squares + objective - penalty.users;
  // A negated comparison, so that NaN also returns undefined.
  if (!(squared * MOST_CANCELLED > squares)) return undefined;
  return {
    loss: unit ** 2 * (squares + objective + penalty.items),
    trainRmse: unit * Math.sqrt(squared / ratings),
    ...tests,
    fromSolve: true,
  };
}

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
