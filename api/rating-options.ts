import type { BadRowPolicy } from '../operators/ratings/rows/bad-rows.ts';
import type { ColdStart } from '../operators/serving/predict.ts';
import type { DuplicatePolicy } from '../operators/tasks/tasks.ts';

/** The rating options of every trainer, in addition to its parameters. */
export interface RatingOptions {
  /**
   * Column of user ids: integers or text. Default: the data set's name, which must agree, else 'user', else
   * one such as userId.
   */
  readonly userCol?: string;
  /**
   * Column of item ids: integers or text. Default: the data set's name, which must agree, else 'item', else
   * one such as movie_id.
   */
  readonly itemCol?: string;
  /**
   * Column of ratings: numbers, any unit. Default: the data set's name, which must agree, else 'rating', else
   * one such as stars.
   */
  readonly ratingCol?: string;
  /**
   * Column of times, for onDuplicates 'last' only. Default: the data set's name, else 'timestamp', else one
   * such as ts or date.
   */
  readonly timestampCol?: string;
  /** Predictions for unknown users and items: 'nan', or 'drop' to leave their rows out. Default 'nan'. */
  readonly coldStartStrategy?: ColdStart;
  /**
   * Several ratings of one pair: 'keep' all, 'error', the 'last' by timestamp, their 'mean' or 'sum'. Default
   * 'keep'.
   */
  readonly onDuplicates?: DuplicatePolicy;
  /**
   * Rows with null, NaN or infinite values: 'error' ends the run, 'skip' leaves them out and counts them.
   * Default 'error'.
   */
  readonly onBadRows?: BadRowPolicy;
}

export const ratingOptionNames = [
  'userCol',
  'itemCol',
  'ratingCol',
  'timestampCol',
  'coldStartStrategy',
  'onDuplicates',
  'onBadRows',
] as const satisfies readonly (keyof RatingOptions)[];
