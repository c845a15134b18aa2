import type { Model } from '../../api/model.ts';
import { formatCount } from '../../engine/format.ts';
import type { Evaluation, RankingEvaluation } from '../../index.ts';
import { trainingOptions } from '../options/training/training-options.ts';
import type { Report } from '../page/page.ts';
import { errorsSection } from '../page/sections/errors.ts';
import { rankingSection } from '../page/sections/ranking.ts';
import { ratingsSection } from '../page/sections/ratings.ts';
import { partFacts } from './measured.ts';
import { nameFlags } from './name-flags.ts';
import { evaluationVerdict, rankingVerdict } from './verdict.ts';

/** The page of `evaluate` on ratings. */
export function evaluationPage(
  evaluation: Evaluation,
  directory: string,
  model: Model,
  adapter: string | null,
): Report {
  const { rmse, mae, pairs, coldPairs, badRows, baselines, breakdown, warnings } = evaluation;
  const error = (value: number) => (Number.isFinite(value) ? value.toFixed(4) : 'none');
  const ratings = ratingsSection({ users: model.userCounts, items: model.itemCounts });
  return {
    title: `Evaluation of ${directory}`,
    adapter,
    warnings: warnings.map(({ text }) => text),
    lead: {
      verdict: evaluationVerdict(evaluation),
      tiles: [
        { name: 'RMSE', value: error(rmse) },
        { name: 'MAE', value: error(mae) },
        {
          name: 'pairs',
          value: formatCount(pairs),
          remark: coldPairs === 0 ? undefined : `${formatCount(coldPairs)} unknown, not averaged in`,
        },
      ],
    },
    sections: [
      {
        heading: 'Summary',
        tables: [
          {
            head: ['', 'RMSE', 'MAE'],
            rows: [
              ['model', error(rmse), error(mae)],
              ...(baselines
                ? [
                    ['damped means', error(baselines.dampedMeans.rmse), error(baselines.dampedMeans.mae)],
                    ['the mean', error(baselines.mean.rmse), error(baselines.mean.mae)],
                  ]
                : []),
            ],
          },
        ],
        facts: [
          ['pairs', formatCount(pairs)],
          ...partFacts(evaluation),
          ['unknown pairs', `${formatCount(coldPairs)} (not averaged in)`],
          ['bad rows', badRows === 0 ? undefined : `${formatCount(badRows)} left out`],
        ],
      },
      ...(breakdown ? [errorsSection(breakdown)] : []),
      ...(ratings ? [ratings] : []),
    ],
  };
}

/** The page of `evaluate --ranking`. */
export function rankingPage(found: RankingEvaluation, directory: string, adapter: string | null): Report {
  const { metrics, baselines, users, pairs, cold, warnings } = found;
  return {
    title: `Rankings of ${directory}`,
    adapter,
    warnings: warnings.map(({ text }) => nameFlags(text, trainingOptions)),
    lead: {
      verdict: rankingVerdict(metrics, baselines.popularity, users),
      tiles: [
        { name: 'users', value: formatCount(users) },
        { name: 'pairs', value: formatCount(pairs) },
        ...(cold ? [{ name: 'cold pairs', value: formatCount(cold.pairs) }] : []),
      ],
    },
    sections: [rankingSection(found)],
  };
}
