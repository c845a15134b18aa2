import { formatCount } from '../../../engine/format.ts';
import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import type { MetricValues } from './evaluate-ranking.ts';
import { PositiveRanks } from './rank-positives.ts';
import { distinctItems, rankedTest, userValues } from './ranked-test.ts';
import { depthOf, measuresOf, parseMetric } from './ranking-metrics.ts';

/** A validation set and the training ratings, as blocks over the same users and items. */
export interface ValidationPairs {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly test: RatingBlock;
  readonly train: RatingBlock;
}

/** Factors in host memory, whose products are the predictions. */
export interface RankedFactors {
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
}

/**
 * A ranking metric of factors on a validation set, by its name such as ndcg@20: over full rankings of the items that a user has not
 * rated in the training set. Pairs that are in both sets are told once and not ranked. NaN where no pair is left.
 */
export function validationMetric(name: string, { users, items, test, train }: ValidationPairs, { events }: ExecutionContext): (factors: RankedFactors, ctx: ExecutionContext) => Promise<MetricValues> {
  const { metric, k = 1 } = parseMetric(name, 'earlyStopMetric');
  const { positives, leaked } = rankedTest(test, train);
  if (leaked > 0) events({ type: 'warning', text: `${formatCount(leaked)} validation pairs are among the training ratings too, and are not ranked` });
  const excluded = metric === 'auc' ? distinctItems(train) : undefined;
  let ranks: { readonly ctx: ExecutionContext; readonly of: PositiveRanks } | undefined;
  return async ({ userFactors, itemFactors }, ctx) => {
    // The run goes on in another context after a lost device.
    if (ranks?.ctx !== ctx) ranks = { ctx, of: new PositiveRanks(positives, train, { ...ctx, events: () => {} }) };
    const model = { rank: itemFactors.length / keyCount(items), users, items, userFactors, itemFactors };
    const places = await ranks.of.places(model, depthOf([metric], [k]));
    const { means } = userValues({ positives, places, items: keyCount(items), excluded }, measuresOf([metric], [k]));
    return { [name]: means[0] };
  };
}
