/**
 * Ratings equal to the mean that each item and each user is given beside its own, so that a few ratings move
 * its mean little.
 */
export const DAMPING = { items: 25, users: 10 } as const;

/** Rows or columns of a block. */
export interface SideFacts {
  /** Those with a rating, and those with exactly one. */
  readonly rated: number;
  readonly single: number;
}

/** The values of ratings, and the users and items that they are of. */
export interface RatingShape {
  readonly ratings: number;
  /** μ */
  readonly mean: number;
  /** σ of the population. */
  readonly deviation: number;
  readonly least: number;
  readonly most: number;
  /** True where all ratings are whole numbers. */
  readonly whole: boolean;
  readonly users: SideFacts;
  readonly items: SideFacts;
}

/**
 * The training ratings, summed once before training: what warnings and baselines need. Sums are float64 in
 * the block's order.
 */
export interface RatingFacts extends RatingShape {
  readonly means: BlockMeans;
  /** Ratings of each column. */
  readonly columnCounts: Int32Array;
}

/** Damped means by row and column of sorted ratings: r ≈ mean + rows[row] + columns[column]. */
export interface BlockMeans {
  readonly mean: number;
  readonly rows: Float32Array;
  readonly columns: Float32Array;
}
