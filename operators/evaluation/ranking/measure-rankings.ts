import type { ChosenMetrics } from './chosen-metrics.ts';
import type { ItemFacts } from './item-order.ts';
import { coverage, novelty } from './list-counts.ts';
import { type Ranked, type UserValues, userValues } from './ranked-test.ts';
import type { Rankings } from './rankings.ts';

/** Metrics by name: "ndcg@20", "mrr". */
export type MetricValues = Readonly<Record<string, number>>;

export interface MeasuredRankings {
  /** Means over users; NaN without users. */
  readonly metrics: MetricValues;
  /** Values of each user, for the metrics of single users. */
  readonly values: UserValues;
}

/**
 * The chosen metrics of rankings. Novelty needs facts about the training pairs, and is left out without them.
 */
export async function measureRankings(
  rankings: Rankings,
  ranked: Omit<Ranked, 'places'>,
  { measures, lists, depth }: ChosenMetrics,
  facts: ItemFacts | undefined,
): Promise<MeasuredRankings> {
  const places =
    measures.length > 0 ? await rankings.places(depth) : new Uint32Array(2 * ranked.positives.ratings);
  const values = userValues({ ...ranked, places }, measures);
  const ks = [...new Set(lists.map(({ k }) => k))].sort((left, right) => left - right);
  const counts = ks.length > 0 ? await rankings.lists(ks) : [];
  const ofLists = lists.flatMap(({ name, metric, k }) => {
    const own = counts[ks.indexOf(k)];
    if (metric === 'coverage') return [[name, coverage(own)] as const];
    return facts ? [[name, novelty(own.lists, facts.counts, facts.users)] as const] : [];
  });
  return {
    metrics: {
      ...Object.fromEntries(measures.map(({ name }, i) => [name, values.means[i]])),
      ...Object.fromEntries(ofLists),
    },
    values,
  };
}
