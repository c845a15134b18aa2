/**
 * Ranking metrics of one user, from the ranks of the user's positives among all items that the user has not
 * seen. Relevance is binary. P positives, including unknown items, have ranks r_1 < r_2 < ... from 0; N items
 * are ranked, of which P' are positives.
 *
 *     precision@k     #{r < k} / k
 *     recall@k        #{r < k} / P
 *     recall-min@k    #{r < k} / min(k, P)
 *     ndcg@k          Σ over r < k of 1 / log2(r + 2), divided by Σ over i < min(k, P) of 1 / log2(i + 2)
 *     map@k           Σ over r_j < k of j / (r_j + 1), divided by min(k, P)
 *     hit-rate@k      1 if some r < k, else 0
 *     mrr             1 / (r_1 + 1), or 0 without a ranked positive
 *     auc             mean over the positives of the share of the N - P' other items that are ranked lower
 *
 * Järvelin, Kekäläinen 2002 (NDCG); Krichene, Rendle 2020 (the others, over full rankings).
 */
import { UsageError } from '../../../engine/errors.ts';

/** Metrics with a cutoff k, in the order of reports. */
export const metricsAtK = ['precision', 'recall', 'recall-min', 'ndcg', 'map', 'hit-rate'] as const;
export const metricsOfUser = [...metricsAtK, 'mrr', 'auc'] as const;
/** Metrics of all lists together. */
export const metricsOfLists = ['coverage', 'novelty'] as const;

export const rankingMetricNames = [...metricsOfUser, ...metricsOfLists] as const;
export type RankingMetric = (typeof rankingMetricNames)[number];
/** A metric of single users with its k, such as 'ndcg@20'; 'mrr' and 'auc' have no k. */
export type RankingMetricName = `${(typeof metricsAtK)[number]}@${number}` | 'mrr' | 'auc';

export interface UserRanking {
  /** Ranks of the `ranked` positives, ascending; later elements are undefined. */
  readonly places: ArrayLike<number>;
  readonly ranked: number;
  /** Number of positives that are not ranked, since the model does not know their items. */
  readonly missing: number;
  /** Number of ranked items. */
  readonly candidates: number;
}

type Measure = (user: UserRanking) => number;

/** A metric of single users by its name in reports, such as ndcg@20. */
export interface NamedMeasure {
  readonly name: string;
  readonly of: Measure;
}

/** The measures of the chosen metrics, at each k in the order of `ks`. */
export function measuresOf(metrics: readonly RankingMetric[], ks: readonly number[]): NamedMeasure[] {
  const chosen = new Set<string>(metrics);
  const atK = ks.flatMap((k) =>
    metricsAtK
      .filter((name) => chosen.has(name))
      .map((name): NamedMeasure => ({ name: `${name}@${k}`, of: measureAt[name](k) })),
  );
  const others = (['mrr', 'auc'] as const)
    .filter((name) => chosen.has(name))
    .map((name): NamedMeasure => ({ name, of: name === 'mrr' ? reciprocalRank : areaUnderCurve }));
  return [...atK, ...others];
}

/** Number of top ranks that the metrics distinguish, the largest k. Undefined if a metric needs all ranks. */
export function depthOf(metrics: readonly RankingMetric[], ks: readonly number[]): number | undefined {
  return metrics.includes('mrr') || metrics.includes('auc') ? undefined : Math.max(...ks);
}

const measureAt: Readonly<Record<(typeof metricsAtK)[number], (k: number) => Measure>> = {
  precision: (k) => (user) => hits(user, k) / k,
  recall: (k) => (user) => hits(user, k) / positivesOf(user),
  'recall-min': (k) => (user) => hits(user, k) / Math.min(k, positivesOf(user)),
  ndcg: (k) => {
    const discounts = Float64Array.from({ length: k }, (_, place) => 1 / Math.log2(place + 2));
    const ideals = new Float64Array(k + 1);
    for (let i = 0; i < k; i++) ideals[i + 1] = ideals[i] + discounts[i];
    return (user) => {
      let gain = 0;
      for (let j = 0; j < user.ranked && user.places[j] < k; j++) gain += discounts[user.places[j]];
      return gain / ideals[Math.min(k, positivesOf(user))];
    };
  },
  map: (k) => (user) => {
    let sum = 0;
    for (let j = 0; j < user.ranked && user.places[j] < k; j++) sum += (j + 1) / (user.places[j] + 1);
    return sum / Math.min(k, positivesOf(user));
  },
  'hit-rate': (k) => (user) => (hits(user, k) > 0 ? 1 : 0),
};

const reciprocalRank: Measure = ({ places, ranked }) => (ranked > 0 ? 1 / (places[0] + 1) : 0);

/**
 * Mean over the positives of the share of the other items that are ranked lower. If all ranked items are
 * positives, no pair can be in wrong order, so a ranked positive counts 1.
 */
const areaUnderCurve: Measure = (user) => {
  const { places, ranked, candidates } = user;
  const others = candidates - ranked;
  let shares = 0;
  for (let j = 0; j < ranked; j++) shares += others > 0 ? (others - (places[j] - j)) / others : 1;
  return shares / positivesOf(user);
};

function hits({ places, ranked }: UserRanking, k: number): number {
  let count = 0;
  while (count < ranked && places[count] < k) count++;
  return count;
}

function positivesOf({ ranked, missing }: UserRanking): number {
  return ranked + missing;
}

/** Parses "ndcg@20" into metric and k; "mrr" and "auc" have no k. Throws UsageError for other texts. */
export function parseMetric(
  text: string,
  what: string,
): { readonly metric: RankingMetric; readonly k: number | undefined; readonly name: RankingMetricName } {
  const [, name, k] = /^([a-z-]+)(?:@(\d+))?$/.exec(text) ?? [];
  const metric = metricsOfUser.find((candidate) => candidate === name);
  const needsK = metric !== 'mrr' && metric !== 'auc';
  if (metric !== undefined && needsK === (k !== undefined) && Number(k ?? 1) >= 1)
    return { metric, k: k === undefined ? undefined : Number(k), name: text as RankingMetricName };
  throw new UsageError(`${what} must be a metric such as ndcg@20, recall@10, mrr or auc, got "${text}"`, {
    advice: `There are: ${metricsAtK.map((one) => `${one}@k`).join(', ')}, mrr, auc`,
  });
}
