import {
  type ChosenMetric,
  depthOf,
  measuresOf,
  metricsOfLists,
  type NamedMeasure,
  type RankingMetric,
  readMetric,
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

/** Metrics at a k of their own (ndcg@20), and the others at each k. */
export function chosenMetrics(names: readonly ChosenMetric[], ks: readonly number[]): ChosenMetrics {
  const read = names.map((name) => readMetric(name)!);
  const shared = read.filter(({ k }) => k === undefined).map(({ metric }) => metric);
  return together([
    atEach(shared, ks),
    ...read.filter(({ k }) => k !== undefined).map(({ metric, k }) => atEach([metric], [k!])),
  ]);
}

/** Metrics with individual k, such as ndcg at 10 and recall at 20. */
export function metricsAt(chosen: readonly (readonly [metric: RankingMetric, k: number])[]): ChosenMetrics {
  return together(chosen.map(([metric, k]) => atEach([metric], [k])));
}

function atEach(metrics: readonly RankingMetric[], ks: readonly number[]): ChosenMetrics {
  const lists = metricsOfLists
    .filter((metric) => metrics.includes(metric))
    .flatMap((metric) => ks.map((k): ListMetric => ({ name: `${metric}@${k}`, metric, k })));
  return { measures: measuresOf(metrics, ks), lists, depth: depthOf(metrics, ks) };
}

/** All of them, each name once. */
function together(each: readonly ChosenMetrics[]): ChosenMetrics {
  const depth = Math.max(...each.map(({ depth: one }) => one ?? Number.POSITIVE_INFINITY));
  return {
    measures: distinct(each.flatMap(({ measures }) => measures)),
    lists: distinct(each.flatMap(({ lists }) => lists)),
    depth: Number.isFinite(depth) ? depth : undefined,
  };
}

function distinct<T extends { readonly name: string }>(all: readonly T[]): T[] {
  return [...new Map(all.map((one) => [one.name, one])).values()];
}
