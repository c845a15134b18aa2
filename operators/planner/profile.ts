/**
 * Facts about the ratings from which a plan is made. If a plan is made from sizes alone, before any data are
 * read, the longest rows and the largest rating are not known.
 */
export interface RatingsProfile {
  /** m */
  readonly users: number;
  /** n */
  readonly items: number;
  /** Nz */
  readonly ratings: number;
  readonly longestUser?: number;
  readonly longestItem?: number;
  readonly largestRating?: number;
  /** Number of pairs in the validation set, if there is one. */
  readonly testRatings?: number;
  /**
   * The source and the operators from which ratings are read, printed as the plan's first stage:
   * "parquet(ratings/) -> select-ratings".
   */
  readonly input?: string;
}
