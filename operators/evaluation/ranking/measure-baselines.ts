import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import type { ChosenMetrics } from './chosen-metrics.ts';
import type { BaselinePairs } from './drawn-pairs.ts';
import type { ItemFacts } from './item-order.ts';
import { type ItemBaseline, itemWeights } from './item-weights.ts';
import { listedRankings, scoresOfItems } from './listed-rankings.ts';
import { measureRankings } from './measure-rankings.ts';
import type { Ranked } from './ranked-test.ts';
import type { RankingBaseline, RankingBaselines } from './ranking-baselines.ts';
import { type Rankings, sharedRankings } from './rankings.ts';
import { rankingsByItems } from './rankings-by-items.ts';

/** The training pairs of the baselines, and facts about them. */
export interface BaselineTraining {
  readonly block: RatingBlock;
  readonly facts: ItemFacts;
}

/** Measures baselines on the same users and items as the model. */
export async function measureBaselines(
  baselines: readonly RankingBaseline[],
  { block, facts }: BaselineTraining,
  {
    pairs,
    ranked,
    chosen,
  }: {
    readonly pairs: BaselinePairs;
    readonly ranked: Omit<Ranked, 'places'>;
    readonly chosen: ChosenMetrics;
  },
  ctx: ExecutionContext,
): Promise<RankingBaselines> {
  const ks = [...new Set(chosen.lists.map(({ k }) => k))];
  const measure = async (rankings: Rankings) =>
    (await measureRankings(rankings, ranked, chosen, facts)).metrics;
  const fromItems = (baseline: ItemBaseline) =>
    Holdings.within(ctx, async (held) => {
      const weights = await itemWeights(baseline, block, facts.counts, held);
      return measure(await rankingsByItems(weights, pairs, ks, held));
    });
  const wants = (name: RankingBaseline) => baselines.includes(name);
  return {
    ...(wants('popularity') && { popularity: await measure(rankingsOfAll(facts.counts, pairs, ctx)) }),
    ...(wants('item-mean') &&
      facts.means && { itemMean: await measure(rankingsOfAll(facts.means, pairs, ctx)) }),
    ...(wants('item-knn') && { itemKnn: await fromItems('item-knn') }),
    ...(wants('ease') && { ease: await fromItems('ease') }),
  };
}

/** Rankings by a score of each item, the same for all users. */
function rankingsOfAll(scores: ArrayLike<number>, pairs: BaselinePairs, ctx: ExecutionContext): Rankings {
  const { model, positives, lists } = pairs;
  return lists === undefined
    ? sharedRankings(scores, pairs, ctx)
    : listedRankings(scoresOfItems(scores, lists), { lists, positives, items: keyCount(model.items) });
}
