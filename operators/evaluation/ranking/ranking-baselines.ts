import type { MetricValues } from './measure-rankings.ts';

export const rankingBaselineNames = ['popularity', 'item-mean', 'item-knn', 'ease'] as const;

/** Rankings to compare a model with: by the number of users, by the mean rating, or from item to item. */
export type RankingBaseline = (typeof rankingBaselineNames)[number];

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
