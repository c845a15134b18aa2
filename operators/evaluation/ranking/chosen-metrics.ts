import {
  depthOf,
  measuresOf,
  metricsOfLists,
  type NamedMeasure,
  type RankingMetric,
} from './ranking-metrics.ts';

/** A metric over the first k items of all users together, such as coverage. */
export interface ListMetric {
  readonly name: string;
  readonly metric: (typeof metricsOfLists)[number];
  readonly k: number;
}

/**
 * The chosen metrics with their cutoffs k, in two groups: measures of single users, and metrics of all users'
 * lists together.
 */
export interface ChosenMetrics {
  readonly measures: readonly NamedMeasure[];
  readonly lists: readonly ListMetric[];
  /**
   * Number of top ranks that the measures distinguish; lower ranks all count the same. Undefined if they
   * distinguish all ranks.
   */
  readonly depth: number | undefined;
}

/** Each metric at each k. */
export function chosenMetrics(metrics: readonly RankingMetric[], ks: readonly number[]): ChosenMetrics {
  const lists = metricsOfLists
    .filter((metric) => metrics.includes(metric))
    .flatMap((metric) => ks.map((k): ListMetric => ({ name: `${metric}@${k}`, metric, k })));
  return { measures: measuresOf(metrics, ks), lists, depth: depthOf(metrics, ks) };
}

/** Metrics with individual k, such as ndcg at 10 and recall at 20. */
export function metricsAt(chosen: readonly (readonly [metric: RankingMetric, k: number])[]): ChosenMetrics {
  const each = chosen.map(([metric, k]) => chosenMetrics([metric], [k]));
  const depths = each.map(({ depth }) => depth ?? Number.POSITIVE_INFINITY);
  const depth = Math.max(...depths);
  return {
    measures: each.flatMap(({ measures }) => measures),
    lists: each.flatMap(({ lists }) => lists),
    depth: Number.isFinite(depth) ? depth : undefined,
  };
}
