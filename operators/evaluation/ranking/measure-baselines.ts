import { noEvents } from '../../../engine/events.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { type ItemFacts, itemFacts } from './item-order.ts';
import type { BaselinePairs } from './ranked-pairs.ts';
import { measureRankings, type Ranked } from './measure-rankings.ts';
import {
  type ChosenMetrics,
  metricsAt,
  parseMetric,
  type RankingBaseline,
  type RankingBaselines,
} from './ranking-metrics.ts';
import { type ItemBaseline, itemWeights, rankingsByItems } from './rankings-by-items.ts';
import { listedRankings, type Rankings, scoresOfItems, sharedRankings } from './rankings.ts';
import { type RankedUsers, type ValidationPairs, validationRanking } from './validation-metric.ts';

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

/**
 * Values of a ranking metric on a validation set by baselines, for the same users and pairs as a model's.
 * Repeated pairs of `train` count once. `hasRatings`: its values are ratings, and have means.
 */
export async function validationBaselines(
  name: string,
  baselines: readonly RankingBaseline[],
  { hasRatings, ...pairs }: ValidationPairs & { readonly hasRatings: boolean },
  ranked: RankedUsers,
  ctx: ExecutionContext,
): Promise<Partial<Record<keyof RankingBaselines, number>>> {
  const { metric, k = 1 } = parseMetric(name, 'metric');
  const { items, train } = pairs;
  const { positives, excluded } = validationRanking(name, pairs, ranked, { events: noEvents });
  const measured = await measureBaselines(
    baselines,
    { block: train, facts: itemFacts(train, keyCount(items), hasRatings) },
    {
      pairs: { model: { items }, positives, seen: train },
      ranked: { positives, items: keyCount(items), excluded },
      chosen: metricsAt([[metric, k]]),
    },
    ctx,
  );
  return Object.fromEntries(Object.entries(measured).map(([baseline, values]) => [baseline, values[name]]));
}
