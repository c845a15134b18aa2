import type { RankingEvaluation } from '../../index.ts';
import type { MetricValues } from './measured.ts';

/** The measured baselines of an evaluation with their titles in tables. */
export function namedBaselines({
  popularity,
  itemMean,
  itemKnn,
  ease,
}: RankingEvaluation['baselines']): (readonly [title: string, values: MetricValues])[] {
  const all = { popularity, 'item mean': itemMean, 'item-kNN': itemKnn, EASE: ease };
  return Object.entries(all).flatMap(([title, values]) => (values ? [[title, values] as const] : []));
}
