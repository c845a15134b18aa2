import type { RankingBaseline } from '../../../operators/evaluation/ranking/ranking-metrics.ts';
import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import type { RunOptions } from '../../run-session.ts';
import type { RankUsersOption } from '../ranking-options.ts';
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
  /**
   * The fraction of the ratings on which trials are measured; default 0.1. Drawn at random, or the latest if a
   * trial has a `halfLife`.
   */
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
  /**
   * For a ranking metric: rankings to compare trials with, on the same validation ratings and by the same
   * metric, computed once from the ratings that trials are trained on. True (default): `popularity` and
   * `item-mean`. A list can also name `item-knn`, and `ease` for at most 20,000 items, which take as long as
   * a training. An error metric has the means as baselines, without this option.
   */
  readonly baselines?: boolean | readonly RankingBaseline[];
}

/** Values of a search's metric by simple methods, on the ratings that trials are measured on. */
export interface TuningBaselines {
  /** Ranking metrics: by the number of users of an item; by its damped mean rating. */
  readonly popularity?: number;
  readonly itemMean?: number;
  /** Ranking metrics: by the similarity to the user's own items; by EASE (Steck 2019), λ = 500. */
  readonly itemKnn?: number;
  readonly ease?: number;
  /** Errors of the mean of all ratings, and of damped means of items and users. */
  readonly mean?: number;
  readonly dampedMeans?: number;
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
  /** The best trial; `maxIter` of its `params` is its best iteration, with which `model` was trained. */
  readonly best: Trial;
  /** In the order of the search. */
  readonly trials: readonly Trial[];
  /** Values of the metric to compare with; empty if none were measured. */
  readonly baselines: TuningBaselines;
  /** Trained with the best parameters on all given ratings, including the validation part. */
  readonly model: Model;
}
