import { UsageError } from '../../../engine/errors.ts';

/**
 * Ranking metrics of one user, from the ranks of the user's positives among all items that the user has not
 * seen. Relevance is binary. P positives, including unknown items, have ranks r_1 < r_2 < ... from 0; N items
 * are ranked, of which P' are positives. Items with equal scores have no order: each metric is its expected
 * value if every order of them is equally likely (McSherry, Najork 2008), so that it does not depend on ids.
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

/** Metrics with a cutoff k, in the order of reports. */
const metricsAtK = ['precision', 'recall', 'recall-min', 'ndcg', 'map', 'hit-rate'] as const;
const metricsOfUser = [...metricsAtK, 'mrr', 'auc'] as const;
/** Metrics of all lists together. */
const metricsOfLists = ['coverage', 'novelty'] as const;

export const rankingMetricNames = [...metricsOfUser, ...metricsOfLists] as const;
export type RankingMetric = (typeof rankingMetricNames)[number];
/** A metric of single users with its k, such as 'ndcg@20'; 'mrr' and 'auc' have no k. */
export type RankingMetricName = `${(typeof metricsAtK)[number]}@${number}` | 'mrr' | 'auc';

/** A metric at each k of a report, such as 'ndcg', or at a k of its own: 'ndcg@20'. */
export type ChosenMetric =
  | RankingMetric
  | `${(typeof metricsAtK)[number] | (typeof metricsOfLists)[number]}@${number}`;

/** The metric and its own k, if it has one; undefined for another text. */
export function readMetric(
  text: string,
): { readonly metric: RankingMetric; readonly k: number | undefined } | undefined {
  const [, name, digits] = /^([a-z-]+)(?:@([1-9]\d{0,4}))?$/.exec(text) ?? [];
  const metric = rankingMetricNames.find((candidate) => candidate === name);
  if (metric === undefined || (digits !== undefined && (metric === 'mrr' || metric === 'auc')))
    return undefined;
  return { metric, k: digits === undefined ? undefined : Number(digits) };
}

export interface UserRanking {
  /**
   * The positives in groups of equal scores, best first. For each of the `groups` groups the number of ranked
   * items with higher scores, of items with its score, and of positives among these; later elements are
   * undefined. A positive without a score is in no group.
   */
  readonly groups: number;
  readonly above: ArrayLike<number>;
  readonly tied: ArrayLike<number>;
  readonly hits: ArrayLike<number>;
  /** Number of positives that are ranked. */
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
  precision: (k) => (user) => hitsAt(user, k) / k,
  recall: (k) => (user) => hitsAt(user, k) / positivesOf(user),
  'recall-min': (k) => (user) => hitsAt(user, k) / Math.min(k, positivesOf(user)),
  ndcg: (k) => {
    const discounts = Float64Array.from({ length: k }, (_, place) => 1 / Math.log2(place + 2));
    const ideals = new Float64Array(k + 1);
    for (let i = 0; i < k; i++) ideals[i + 1] = ideals[i] + discounts[i];
    return (user) => {
      const { above, tied } = user;
      let gain = 0;
      for (let g = 0; g < user.groups; g++) {
        const share = user.hits[g] / tied[g];
        for (let place = above[g]; place < Math.min(k, above[g] + tied[g]); place++)
          gain += share * discounts[place];
      }
      return gain / ideals[Math.min(k, positivesOf(user))];
    };
  },
  map: (k) => (user) => {
    const { above, tied, hits } = user;
    let [sum, before] = [0, 0];
    for (let g = 0; g < user.groups; g++) {
      const share = hits[g] / tied[g];
      // If a place of the group has a positive, each place of the group before it has one of the others.
      const others = tied[g] > 1 ? (hits[g] - 1) / (tied[g] - 1) : 0;
      for (let place = above[g]; place < Math.min(k, above[g] + tied[g]); place++)
        sum += (share * (before + 1 + (place - above[g]) * others)) / (place + 1);
      before += hits[g];
    }
    return sum / Math.min(k, positivesOf(user));
  },
  'hit-rate': (k) => (user) => 1 - missed(user, k),
};

/** Probability that no positive is among the first k. */
function missed({ groups, above, tied, hits }: UserRanking, k: number): number {
  let probability = 1;
  for (let g = 0; g < groups && above[g] < k && probability > 0; g++) {
    const later = Math.max(0, above[g] + tied[g] - k);
    for (let j = 0; j < hits[g]; j++) probability *= Math.max(0, later - j) / (tied[g] - j);
  }
  return probability;
}

/** 1 / (place + 1) of the first positive, over the places that it may have in its group. */
const reciprocalRank: Measure = ({ groups, above, tied, hits }) => {
  if (groups === 0) return 0;
  let [sum, left] = [0, 1];
  for (let place = 0; left > 0; place++) {
    const here = (left * hits[0]) / (tied[0] - place);
    sum += here / (above[0] + place + 1);
    left *= Math.max(0, tied[0] - place - hits[0]) / (tied[0] - place);
  }
  return sum;
};

/**
 * Mean over the positives of the share of the other items that are ranked lower; an item with the same score
 * counts half. If all ranked items are positives, no pair can be in wrong order, so a ranked positive counts
 * 1.
 */
const areaUnderCurve: Measure = (user) => {
  const { groups, above, tied, hits, ranked, candidates } = user;
  const others = candidates - ranked;
  let [shares, before] = [0, 0];
  for (let g = 0; g < groups; g++) {
    const lower = others - (above[g] - before) - (tied[g] - hits[g]) / 2;
    shares += others > 0 ? (hits[g] * lower) / others : hits[g];
    before += hits[g];
  }
  return shares / positivesOf(user);
};

/** Expected number of positives among the first k. */
function hitsAt({ groups, above, tied, hits }: UserRanking, k: number): number {
  let count = 0;
  for (let g = 0; g < groups && above[g] < k; g++)
    count += (hits[g] * Math.min(k - above[g], tied[g])) / tied[g];
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
  const { metric, k } = readMetric(text) ?? {};
  const isOfUser = metricsOfUser.some((name) => name === metric);
  const needsK = metric !== 'mrr' && metric !== 'auc';
  if (metric !== undefined && isOfUser && needsK === (k !== undefined))
    return { metric, k, name: text as RankingMetricName };
  throw new UsageError(`${what} must be a metric such as ndcg@20, recall@10, mrr or auc, got "${text}"`, {
    advice: `There are: ${metricsAtK.map((one) => `${one}@k`).join(', ')}, mrr, auc`,
  });
}

/** A metric over the first k items of all users together, such as coverage. */
interface ListMetric {
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

export const rankingBaselineNames = ['popularity', 'item-mean', 'item-knn', 'ease'] as const;

/** Rankings to compare a model with: by the number of users, by the mean rating, or from item to item. */
export type RankingBaseline = (typeof rankingBaselineNames)[number];

/** Metrics by name: "ndcg@20", "mrr". */
export type MetricValues = Readonly<Record<string, number>>;

/** The metrics of each baseline that was measured. */
export interface RankingBaselines {
  /** By the number of users of an item; the same for all users. */
  readonly popularity?: MetricValues;
  /** By an item's damped mean rating, if the pairs have ratings; the same for all users. */
  readonly itemMean?: MetricValues;
  /** By the similarity to the user's own items (cosine, 100 neighbours). */
  readonly itemKnn?: MetricValues;
  /** By EASE (Steck 2019), λ = 500. */
  readonly ease?: MetricValues;
}
