import { noEvents } from '../../../engine/events.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { metricsAt } from './chosen-metrics.ts';
import { itemFacts } from './item-order.ts';
import { measureBaselines } from './measure-baselines.ts';
import type { RankingBaseline, RankingBaselines } from './ranking-baselines.ts';
import { parseMetric } from './ranking-metrics.ts';
import { type RankedUsers, type ValidationPairs, validationRanking } from './validation-metric.ts';

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
