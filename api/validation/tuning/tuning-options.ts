import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import type { RunOptions } from '../../run-session.ts';
import type { RankUsersOption } from '../rank-users.ts';
import type { SearchSpace, TrialParams } from './search-space.ts';
import type { Trial, TunedEstimator, TuningMetric } from './trial.ts';

export type SearchStrategy = 'grid' | 'random' | 'halving';

export interface TrainValidationSplitOptions extends RankUsersOption {
  /** Creates the estimator for one combination of parameters: (params) => new ALS(params). */
  readonly estimator: (params: TrialParams) => TunedEstimator;
  /** The combinations to compare. Default: drawn from `space`; one of the two is required. */
  readonly grid?: readonly TrialParams[];
  /** The values of each parameter, as lists or ranges. Default: those in `grid`. */
  readonly space?: SearchSpace;
  /**
   * `grid`: all combinations; `random`: `trials` of them; `halving`: like `random`, but only a third
   * continues at each rung. Default: `grid` if all are lists, else `random`.
   */
  readonly search?: SearchStrategy;
  /** Trials of a random search, 1 or more. Default 30. */
  readonly trials?: number;
  /**
   * Combinations to try before random ones, for example the defaults; they count as trials. Default: none.
   */
  readonly first?: readonly TrialParams[];
  /**
   * The measure on the validation ratings: 'rmse', 'mae', or a ranking metric such as 'ndcg@20', for which
   * larger is better. Default 'rmse'.
   */
  readonly metric?: TuningMetric;
  /** The fraction of the ratings on which trials are measured; default 0.1. */
  readonly validationFraction?: number;
  /** Seed of the split and of a random search; default 0. */
  readonly seed?: number;
  /** Concurrent trials; default 1, since each uses all workers already. */
  readonly parallelism?: number;
  /**
   * ALS: of trials that differ only in λ, each after the first starts with the factors of the next larger λ,
   * and runs half the iterations. Faster; values of small λ are slightly better than in a separate fit.
   * Default false.
   */
  readonly warmStart?: boolean;
  /**
   * Adds `ranking` to the best trial: ranking metrics on the validation ratings, of its model and of
   * popularity. Default: for implicit data only.
   */
  readonly ranking?: boolean;
}

export interface TuneOptions extends RunOptions {
  /**
   * Ratings on which trials are measured. Default: the fraction `validationFraction` of the given ratings.
   */
  readonly validation?: Dataset;
  /** Called with each completed trial. Default: none. */
  readonly onTrial?: (trial: Trial) => void | Promise<void>;
  /**
   * Trials of an earlier run of the same search on the same ratings, which are not repeated. Default: none.
   */
  readonly done?: readonly Trial[];
}

export interface Tuning {
  readonly best: Trial;
  /** In the order of the search. */
  readonly trials: readonly Trial[];
  /** Trained with the best parameters on all given ratings, including the validation part. */
  readonly model: Model;
}
