import type { StepResults } from '../../engine/run/run-steps.ts';
import { DAMPING } from '../evaluation/rating-facts.ts';
import { rowParts, type SortedRatings } from '../ratings/spilled-ratings.ts';
import type { TrainingErrors } from '../training/loss.ts';
import type { RatingLevel } from './rating-unit.ts';

/**
 * Largest Σ r² over Σ e² at which e comes out of the solve: their difference is one of sums in float32, or in float16 with those of A and b. Beyond, where ratings are
 * all but reproduced, a pass over the ratings finds it.
 */
export const MOST_CANCELLED = 100;

/** The objective of all rows of the users: Σ over them of xᵀA x - 2 bᵀx, with A's penalty. NaN where a task did not tell it. */
export function solvedObjective(round: StepResults): number {
  let [sum, tasks] = [0, 0];
  for (const kernel of ['update', 'update-implicit', 'solve-equations']) {
    for (const values of round.byPart('update-users', kernel, 'factors')) for (const { objective = NaN } of values) {
      sum += objective as number;
      tasks++;
    }
  }
  return tasks === 0 ? NaN : sum;
}

/**
 * Σ (r - μ - γ_v)² over all ratings, the squares that the objective of the users belongs to: Σ (r - μ)² is known once, and the items' biases enter by the items' sums S_v = Σ (r - μ),
 *
 *     Σ (r - μ)² + Σ_v γ_v (n_v γ_v - 2 S_v)
 *
 * Without biases Σ r². `columns`: S_v / (n_v + 25). `mean`: μ, or 0 without biases.
 */
export function squaresBeside(byItem: SortedRatings, { mean, deviation, columns }: RatingLevel, biases: Float32Array | undefined): number {
  const apart = byItem.ratings * deviation ** 2;
  if (biases === undefined) return apart + byItem.ratings * mean ** 2;
  if (columns === undefined) return NaN;
  let sum = apart;
  for (const { from, rows, offsets } of rowParts(byItem)) {
    for (let row = 0; row < rows; row++) {
      const count = offsets[row + 1] - offsets[row];
      const bias = biases[from + row];
      sum += bias * (count * bias - 2 * columns[from + row] * (count + DAMPING.items));
    }
  }
  return sum;
}

/**
 * Loss and training RMSE, beside the errors of `tests`, from the objective of the users, the squares beside it, and the penalties of both sides, which the users' part of the loss has (users) and has not
 * (items). Undefined where cancellation leaves too few digits.
 */
export function solvedErrors(objective: number, squares: number, penalty: Readonly<Record<'users' | 'items', number>>, ratings: number, unit: number, tests: Pick<TrainingErrors, 'testRmse' | 'testMae'>): TrainingErrors | undefined {
  const squared = squares + objective - penalty.users;
  // NaN is no number of digits.
  if (!(squared * MOST_CANCELLED > squares)) return undefined;
  return { loss: unit ** 2 * (squares + objective + penalty.items), trainRmse: unit * Math.sqrt(squared / ratings), ...tests, fromSolve: true };
}
