import { UsageError } from '../../../engine/errors.ts';
import { type Choice, choices, type ChosenMetric, isChosenMetric } from '../../../api/check-objects.ts';
import { choice, decimal, listed, shown, text, toggle, wholeNumber } from '../kinds.ts';
import type { Group, Values } from '../option.ts';
import { rankUsersOption } from './held-out-options.ts';

/** Names of baselines, or none. */
export function baselinesOption(describe: string, group: Group) {
  return listed({
    describe:
      `${describe}: popularity, item-mean, item-knn (similarity to the items of a user), ease (at most ` +
      '20,000 items), separated by commas, or none; item-knn and ease take as long as a training',
    group,
    fallback: undefined,
    defaultText: 'popularity, item-mean',
    item: choice({ describe: '', group, choices: [...choices.rankingBaselines, 'none'] }),
  });
}

/** The baselines that the flag names; undefined if it is not given. */
export function baselinesOf(given: readonly string[] | undefined) {
  return given?.filter((name): name is Choice<'rankingBaselines'> => name !== 'none');
}

/** The flags of `evaluate --ranking`. */
export const rankingOptions = {
  ranking: toggle({
    describe: 'rank all items for each user and measure the ranks of the test items',
    group: 'Ranking:',
  }),
  k: listed({
    describe: 'lengths of the lists that are measured',
    group: 'Ranking:',
    fallback: [10],
    defaultText: '10',
    item: wholeNumber({ describe: '', group: 'Ranking:', least: 1, most: 10_000 }),
  }),
  exclude: text({
    describe: 'the ratings trained on: their pairs are not ranked, and the baselines are computed from them',
    group: 'Ranking:',
  }),
  candidates: text({
    describe: 'pairs of user and item: only these items and the test items are ranked for each user',
    group: 'Ranking:',
    defaultText: 'all items',
  }),
  metrics: listed({
    describe: `metrics, separated by commas: ${choices.rankingMetrics.join(', ')}; at --k, or at a k of their own: ndcg@20`,
    group: 'Ranking:',
    fallback: undefined,
    defaultText: 'all',
    item: {
      describe: '',
      group: 'Ranking:',
      fallback: undefined,
      read: (given, flag): ChosenMetric => {
        if (isChosenMetric(given)) return given;
        throw new UsageError(`${flag} must be metrics of rankings, got ${shown(given)}`, {
          advice: `There are: ${choices.rankingMetrics.join(', ')}, all but mrr and auc also with a k, such as ndcg@20`,
        });
      },
    },
  }),
  baselines: baselinesOption('rankings to compare with, computed from --exclude', 'Ranking:'),
  minRating: decimal({
    describe: 'only test pairs with at least this rating are positives',
    group: 'Ranking:',
  }),
  coldPairs: choice({
    describe: 'test pairs that the model does not know: left out, or counted as misses',
    group: 'Ranking:',
    choices: ['drop', 'miss'],
    fallback: 'drop',
  }),
  resamples: wholeNumber({
    describe: 'bootstrap resamples for the 95 % intervals; 0: no intervals',
    group: 'Ranking:',
    least: 0,
    most: 10_000,
    fallback: 1000,
  }),
  rankUsers: rankUsersOption,
  seed: wholeNumber({
    describe: 'seed of the bootstrap, and of the users that are drawn',
    group: 'Ranking:',
    least: 0,
    most: 2 ** 32 - 1,
    fallback: 0,
  }),
};

export type RankingValues = Values<typeof rankingOptions>;

/** Throws UsageError for a ranking flag without --ranking. */
export function checkRanking({ ranking }: RankingValues, given: ReadonlySet<string>): void {
  const idle = ranking
    ? undefined
    : (
        [
          'k',
          'exclude',
          'candidates',
          'metrics',
          'baselines',
          'minRating',
          'coldPairs',
          'resamples',
          'rankUsers',
          'seed',
        ] as const
      ).find((name) => given.has(name));
  if (idle !== undefined)
    throw new UsageError(
      `--${idle.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} acts only with --ranking`,
      { advice: 'Add --ranking, or leave it out' },
    );
}

/** The options of `evaluateRanking`, without the exclusions. */
export function rankingSettings({
  k,
  metrics,
  baselines,
  minRating,
  coldPairs,
  resamples,
  rankUsers,
  seed,
}: RankingValues) {
  return {
    k: k as readonly number[],
    metrics: metrics as readonly ChosenMetric[] | undefined,
    baselines: baselinesOf(baselines),
    minRating,
    coldPairs,
    resamples,
    rankUsers,
    seed,
  };
}
