import type { RankingMetric } from '../../operators/evaluation/ranking/ranking-metrics.ts';
import type { BadRowPolicy } from '../../operators/ratings/rows/bad-rows.ts';
import type { Dataset } from '../dataset.ts';
import type { RunOptions } from '../run-session.ts';
import type { RankUsersOption } from './rank-users.ts';

export interface RankingOptions extends RunOptions, RankUsersOption {
  /** Lengths of the lists whose precision, recall and so on are measured, 1 to 10,000. Default 10. */
  readonly k?: number | readonly number[];
  /**
   * The ratings that the model was trained on: their pairs are not ranked, and the baselines are made of
   * them.
   */
  readonly exclude?: Dataset;
  /**
   * Pairs of user and item: for each user only these items and the test items are ranked, except pairs of
   * `exclude`. For the protocols of papers with sampled negatives; default: all items.
   */
  readonly candidates?: Dataset;
  /** Default: all. `coverage` and `novelty` need the users' lists, a second search. */
  readonly metrics?: readonly RankingMetric[];
  /** Only test pairs with at least this rating are positives. Default: all are. */
  readonly minRating?: number;
  /**
   * Test pairs whose user or item the model does not know: `drop` (default) leaves them out; `miss` counts a
   * positive of an unknown item as ranked after all other items, and gives an unknown user metrics of 0.
   */
  readonly coldPairs?: 'drop' | 'miss';
  /** Measures rankings by popularity and by mean rating too. Default true; they need `exclude`. */
  readonly baselines?: boolean;
  /** Resamples of the bootstrap, 0 to 10,000; default 1,000. 0: no intervals. */
  readonly resamples?: number;
  /** Of the bootstrap, and of the users that are drawn; default 0. */
  readonly seed?: number;
  readonly onBadRows?: BadRowPolicy;
}
