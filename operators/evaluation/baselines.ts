import { nextTurn } from '../../engine/waits.ts';
import type { RatingBlock } from '../ratings/rating-block.ts';
import type { BlockMeans } from './rating-facts.ts';

/** Root of the mean squared error, and mean absolute error. */
export type PairErrors = {
  readonly rmse: number;
  readonly mae: number;
};

/**
 * Errors of two simple predictors on the pairs on which a model is measured. If the model's errors are
 * larger, it has learned nothing.
 */
export type Baselines = {
  /** Predicts the mean of the training ratings for every pair. */
  readonly mean: PairErrors;
  /**
   * Predicts the mean, plus the mean deviation of the item's ratings from it, plus the mean deviation of the
   * user's ratings from both. Deviations are damped: see rowFacts.
   */
  readonly dampedMeans: PairErrors;
};

/** Damped means by position: r_uv ≈ mean + users[u] + items[v]. */
export interface DampedMeans {
  /** μ of the training ratings. */
  readonly mean: number;
  readonly users: Float32Array;
  readonly items: Float32Array;
}

/** Sums errors in float64. */
export class ErrorSums {
  #squared = 0;
  #absolute = 0;
  #count = 0;

  add(error: number): void {
    this.#squared += error * error;
    this.#absolute += Math.abs(error);
    this.#count++;
  }

  /** NaN if there were no errors. */
  errors(): PairErrors {
    return { rmse: Math.sqrt(this.#squared / this.#count), mae: this.#absolute / this.#count };
  }
}

/** Sums the errors of both predictors, pair by pair. */
export class BaselineSums {
  readonly #mean = new ErrorSums();
  readonly #damped = new ErrorSums();

  add(rating: number, mean: number, user: number, item: number): void {
    this.#mean.add(rating - mean);
    this.#damped.add(rating - mean - user - item);
  }

  baselines(): Baselines {
    return { mean: this.#mean.errors(), dampedMeans: this.#damped.errors() };
  }
}

/** Number of pairs after which other work of this thread gets a turn. */
const PIECE = 1 << 16;

/**
 * Measures both baselines on a block of other ratings of the same rows and columns; undefined if it is empty.
 * Lets other work of this thread run from time to time, such as a running training.
 */
export async function baselinesOf(
  { rows, ratings, offsets, indices, values }: RatingBlock,
  means: BlockMeans,
): Promise<Baselines | undefined> {
  if (ratings === 0) return undefined;
  const sums = new BaselineSums();
  let turn = PIECE;
  for (let row = 0; row < rows; row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++)
      sums.add(values[k], means.mean, means.rows[row], means.columns[indices[k]]);
    if (offsets[row + 1] < turn) continue;
    turn += PIECE;
    await nextTurn();
  }
  return sums.baselines();
}
