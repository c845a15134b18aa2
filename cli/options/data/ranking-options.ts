import { type Choice, choices, type ChosenMetric, isChosenMetric } from '../../../api/check-objects.ts';
import { listLengthParam, rankingParams } from '../../../api/option-params.ts';
import { UsageError } from '../../../engine/errors.ts';
import { choice, flagOf, flagsOf, listed, shown, text, toggle } from '../kinds.ts';
import { grouped, refuseFlags, type Values } from '../option.ts';

/** Names of baselines, or none. */
export function baselinesOption(describe: string) {
  return listed(
    `${describe}: popularity, item-mean, item-knn (similarity to the items of a user), ease (at most ` +
      '20,000 items), separated by commas, or none; item-knn and ease take as long as a training',
    {
      fallback: undefined,
      defaultText: 'popularity, item-mean',
      item: choice('', { choices: [...choices.rankingBaselines, 'none'] }),
    },
  );
}

/** The baselines that the flag names; undefined if it is not given. */
export function baselinesOf(given: readonly string[] | undefined) {
  return given?.filter((name): name is Choice<'rankingBaselines'> => name !== 'none');
}

/** The flags of `evaluate --ranking`. */
export const rankingOptions = grouped('Ranking:', {
  ranking: toggle('rank all items for each user and measure the ranks of the test items'),
  k: listed(listLengthParam.help, {
    fallback: [10],
    defaultText: '10',
    item: flagOf(listLengthParam),
  }),
  exclude: text(
    'the ratings trained on: their pairs are not ranked, and the baselines are computed from them',
  ),
  candidates: text('pairs of user and item: only these items and the test items are ranked for each user', {
    defaultText: 'all items',
  }),
  metrics: listed(
    `metrics, separated by commas: ${choices.rankingMetrics.join(', ')}; at --k, or at a k of their own: ndcg@20`,
    {
      fallback: undefined,
      defaultText: 'all',
      item: {
        read: (given, flag): ChosenMetric => {
          if (isChosenMetric(given)) return given;
          throw new UsageError(`${flag} must be metrics of rankings, got ${shown(given)}`, {
            advice: `There are: ${choices.rankingMetrics.join(', ')}, all but mrr and auc also with a k, such as ndcg@20`,
          });
        },
      },
    },
  ),
  baselines: baselinesOption('rankings to compare with, computed from --exclude'),
  ...flagsOf(rankingParams),
});

export type RankingValues = Values<typeof rankingOptions>;

/** Throws UsageError for a ranking flag without --ranking. */
export function checkRanking({ ranking }: RankingValues, given: ReadonlySet<string>): void {
  const others = Object.keys(rankingOptions).filter((name) => name !== 'ranking');
  if (!ranking) refuseFlags(given, others, 'acts only with --ranking', 'Add --ranking, or leave it out');
}

/** The options of `evaluateRanking`, without the exclusions. */
export function rankingSettings({ k, metrics, baselines, ...values }: RankingValues) {
  const { minRating, coldPairs, resamples, rankUsers, seed } = values;
  return { k, metrics, baselines: baselinesOf(baselines), minRating, coldPairs, resamples, rankUsers, seed };
}
