import type { Model } from '../../api/model.ts';
import { formatCount } from '../../engine/format.ts';
import type { Evaluation } from '../../index.ts';
import type { Report } from '../page/section.ts';
import { errorsSection } from '../page/sections/errors.ts';
import { ratingsSection } from '../page/sections/ratings.ts';

/** The page of `evaluate` on ratings. */
export function evaluationPage({ rmse, mae, pairs, coldPairs, badRows, baselines, breakdown, warnings }: Evaluation, directory: string, model: Model, adapter: string | null): Report {
  const error = (value: number) => (Number.isFinite(value) ? value.toFixed(4) : 'none');
  const ratings = ratingsSection({ users: model.userCounts, items: model.itemCounts });
  return {
    title: `Evaluation of ${directory}`,
    adapter,
    warnings: warnings.map(({ text }) => text),
    sections: [
      {
        heading: 'Summary',
        tables: [{ head: ['', 'RMSE', 'MAE'], rows: [['model', error(rmse), error(mae)], ...(baselines ? [['damped means', error(baselines.dampedMeans.rmse), error(baselines.dampedMeans.mae)], ['the mean', error(baselines.mean.rmse), error(baselines.mean.mae)]] : [])] }],
        facts: [['pairs', formatCount(pairs)], ['cold pairs', `${formatCount(coldPairs)} (not averaged in)`], ['bad rows', badRows === 0 ? undefined : `${formatCount(badRows)} left out`]],
      },
      ...(breakdown ? [errorsSection(breakdown)] : []),
      ...(ratings ? [ratings] : []),
    ],
  };
}
