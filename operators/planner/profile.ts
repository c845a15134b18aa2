/**
 * The facts about the data that a plan is made from. Without the data, the longest rows and the ratings are
 * not known.
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
  /** Pairs of the validation set, when there is one. */
  readonly testRatings?: number;
  /** The logical plan's steps, for the first stage: "parquet(ratings/) -> select-ratings". */
  readonly input?: string;
}
