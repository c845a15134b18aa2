import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/shown.ts';
import {
  type RankingBaseline,
  rankingBaselineNames,
} from '../../operators/evaluation/ranking/ranking-metrics.ts';

/** The option `baselines` as a list; true: popularity and item-mean. Throws UsageError for other names. */
export function chosenBaselines(
  baselines: boolean | readonly RankingBaseline[] = true,
): readonly RankingBaseline[] {
  if (typeof baselines === 'boolean') return baselines ? ['popularity', 'item-mean'] : [];
  const isList = Array.isArray(baselines);
  const wrong = isList ? baselines.findIndex((name) => !rankingBaselineNames.includes(name)) : 0;
  if (wrong >= 0)
    throw new UsageError(
      `baselines must be true, false or a list of baselines, got ${shown(isList ? baselines[wrong] : baselines)}`,
      { advice: `There are: ${rankingBaselineNames.join(', ')}` },
    );
  return baselines;
}
