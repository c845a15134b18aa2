import { RANKED_USERS } from '../../operators/evaluation/ranking/ranked-pairs.ts';
import type { ChosenMetric, RankingBaseline } from '../../operators/evaluation/ranking/ranking-metrics.ts';
import type { BadRowPolicy } from '../../operators/ratings/rows/select-ratings.ts';
import type { Dataset } from '../dataset.ts';
import type { RunOptions } from '../run-session.ts';

export interface RankingOptions extends RunOptions, RankUsersOption {
  /** Lengths k of the lists for precision, recall and others, 1 to 10,000. Default 10. */
  readonly k?: number | readonly number[];
  /**
   * The ratings that the model was trained on: their pairs are not ranked, and the baselines are computed
   * from them. Default: the model's `histories`, if it was saved with them.
   */
  readonly exclude?: Dataset;
  /**
   * Pairs of user and item: for each user only these items and the test items are ranked, except pairs of
   * `exclude`. For protocols with sampled negatives; default: all items.
   */
  readonly candidates?: Dataset;
  /**
   * Metrics at each k, such as `ndcg`, or at a k of their own, such as `ndcg@20`. Default: all. `coverage` and `novelty` need the users' lists, which is a second search.
   */
  readonly metrics?: readonly ChosenMetric[];
  /** Only test pairs with at least this rating are positives. Default: all. */
  readonly minRating?: number;
  /**
   * Test pairs whose user or item is unknown to the model: `drop` (default) leaves them out; `miss` ranks a
   * positive with an unknown item after all other items, and gives an unknown user metrics of 0.
   */
  readonly coldPairs?: 'drop' | 'miss';
  /**
   * Rankings to compare the model with, computed from the pairs of `exclude`. True (default): `popularity`
   * and `item-mean`. A list can also name `item-knn`, the similarity to a user's items, and `ease` (Steck
   * 2019), for at most 20,000 items; these take as long as a training.
   */
  readonly baselines?: boolean | readonly RankingBaseline[];
  /** Resamples of the bootstrap, 0 to 10,000; default 1,000. 0: no intervals. */
  readonly resamples?: number;
  /** For the bootstrap and for drawing users; default 0. */
  readonly seed?: number;
  readonly onBadRows?: BadRowPolicy;
}

/** Users whose rankings are measured. */
export interface RankUsersOption {
  /**
   * Most users to rank. If there are more, this number of users is drawn by the seed; the draw does not
   * depend on row order. Default 10,000; 'all' ranks every user.
   */
  readonly rankUsers?: number | 'all';
}

/** The option as a number. */
export function mostRanked({ rankUsers = RANKED_USERS }: RankUsersOption): number {
  return rankUsers === 'all' ? Number.POSITIVE_INFINITY : rankUsers;
}
