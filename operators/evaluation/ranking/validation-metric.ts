import { formatCount } from '../../../engine/format.ts';
import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { depthOf, measuresOf, type MetricValues, parseMetric } from './ranking-metrics.ts';
import { PositiveRanks } from './rank-positives.ts';
import { distinctItems, drawUsers, onlyRows, rankedTest, usersOf } from './ranked-pairs.ts';
import { userValues } from './measure-rankings.ts';

/** A validation set and the training ratings, as blocks over the same users and items. */
export interface ValidationPairs {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly test: RatingBlock;
  readonly train: RatingBlock;
}

/** At most `rankUsers` users are ranked; if there are more, they are drawn by the seed. */
export interface RankedUsers {
  readonly rankUsers: number;
  readonly seed: number;
}

/** A ranking metric on a validation set. */
export interface ValidationRanking {
  /** Number of items that are not ranked for each user, if the metric needs it. */
  readonly excluded: Uint32Array | undefined;
  /** Pairs to rank, by user. */
  readonly positives: RatingBlock;
  /** Number of top ranks that the metric distinguishes; undefined: all. */
  readonly depth: number | undefined;
  /**
   * Computes the metric from the ranks and ties of the test items (positives: see Rankings), and
   * returns it under its name. NaN if there are no test items.
   */
  values(places: Uint32Array): MetricValues;
}

/** Factors in host memory, whose products are the predictions. */
export interface RankedFactors {
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
}

/**
 * Prepares a ranking metric on a validation set, by its name such as ndcg@20. Each user's validation items
 * are ranked among all items that the user has not rated in the training set. Pairs that are in both sets are
 * not ranked, and are reported once. If there are more than `rankUsers` users, `rankUsers` of them are drawn,
 * the same for all iterations.
 */
export function validationRanking(
  name: string,
  { users, items, test, train }: ValidationPairs,
  { rankUsers, seed }: RankedUsers,
  { events }: Pick<ExecutionContext, 'events'>,
): ValidationRanking {
  const { metric, k = 1 } = parseMetric(name, 'earlyStopMetric');
  const { positives: whole, leaked } = rankedTest(test, train);
  if (leaked > 0)
    events({
      type: 'warning',
      text: `${formatCount(leaked)} validation pairs are among the training ratings too, and are not ranked`,
    });
  const eligible = usersOf(whole);
  const positives =
    eligible.length > rankUsers ? onlyRows(whole, drawUsers(users, eligible, rankUsers, seed)) : whole;
  const excluded = metric === 'auc' ? distinctItems(train) : undefined;
  return {
    excluded,
    positives,
    depth: depthOf([metric], [k]),
    values: (places) => ({
      [name]: userValues({ positives, places, items: keyCount(items), excluded }, measuresOf([metric], [k]))
        .means[0],
    }),
  };
}

/**
 * Measures a ranking metric from factors in host memory; used if the plan of the training has no step that
 * ranks.
 */
export function validationMetric(
  name: string,
  pairs: ValidationPairs,
  ranked: RankedUsers,
  ctx: ExecutionContext,
): (factors: RankedFactors, ctx: ExecutionContext) => Promise<MetricValues> {
  const { users, items, train } = pairs;
  const ranking = validationRanking(name, pairs, ranked, ctx);
  let ranks: { readonly ctx: ExecutionContext; readonly of: PositiveRanks } | undefined;
  return async ({ userFactors, itemFactors }, held) => {
    // If a device was lost, the run continues with a new context, and the ranking must be prepared again on
    // its devices.
    if (ranks?.ctx !== held)
      ranks = { ctx: held, of: new PositiveRanks(ranking.positives, train, { ...held, events: () => {} }) };
    const model = { rank: itemFactors.length / keyCount(items), users, items, userFactors, itemFactors };
    return ranking.values(await ranks.of.places(model, ranking.depth));
  };
}
