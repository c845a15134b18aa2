import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import type { RunOptions } from '../../run-session.ts';
import type { RankUsersOption } from '../rank-users.ts';
import type { SearchSpace, TrialParams } from './search-space.ts';
import type { Trial, TunedEstimator, TuningMetric } from './trial.ts';

export type SearchStrategy = 'grid' | 'random' | 'halving';

export interface TrainValidationSplitOptions extends RankUsersOption {
  /** Makes the estimator of one combination of parameters: (params) => new ALS(params). */
  readonly estimator: (params: TrialParams) => TunedEstimator;
  /** The combinations to compare. Default: drawn from `space`; one of the two is needed. */
  readonly grid?: readonly TrialParams[];
  /** The values of each parameter, as lists or ranges. Default: `grid` has them. */
  readonly space?: SearchSpace;
  /**
   * `grid`: all combinations; `random`: `trials` of them; `halving`: the same, of which a third goes on at a
   * time. Default: `grid` for lists alone, else `random`.
   */
  readonly search?: SearchStrategy;
  /** Trials of a search at random, 1 or more. Default 30. */
  readonly trials?: number;
  /**
   * Combinations that come before those at random, and count among the trials: the defaults, say. Default:
   * none.
   */
  readonly first?: readonly TrialParams[];
  /**
   * The measure on the validation ratings: 'rmse', 'mae', or a ranking metric such as 'ndcg@20', of which the
   * largest is best. Default 'rmse'.
   */
  readonly metric?: TuningMetric;
  /** The part of the ratings that trials are measured on; default 0.1. */
  readonly validationFraction?: number;
  /** Seed of the split and of a search at random; default 0. */
  readonly seed?: number;
  /** Trials at the same time; default 1, since each uses all workers already. */
  readonly parallelism?: number;
  /**
   * ALS: of trials that differ in λ alone, each after the first begins with the factors of the larger λ
   * before it, and takes half the iterations. Faster; values of small λ come out a little better than of a
   * fit of their own. Default false.
   */
  readonly warmStart?: boolean;
  /**
   * Has the best trial's model rank the validation ratings, next to popularity: `best.ranking`. Default: for
   * implicit data alone.
   */
  readonly ranking?: boolean;
}

export interface TuneOptions extends RunOptions {
  /** Ratings to measure trials on. Default: the part `validationFraction` of those given. */
  readonly validation?: Dataset;
  /** Called with each trial that has ended. Default: nothing is called. */
  readonly onTrial?: (trial: Trial) => void | Promise<void>;
  /**
   * Trials of an earlier run of the same search on the same ratings, which are not run again. Default: none.
   */
  readonly done?: readonly Trial[];
}

export interface Tuning {
  readonly best: Trial;
  /** In the order of the search. */
  readonly trials: readonly Trial[];
  /** Trained with the best parameters, on all ratings given, the validation part included. */
  readonly model: Model;
}
