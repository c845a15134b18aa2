import { UsageError } from '../../../engine/errors.ts';
import { choice, countOr, decimal, text, toggle, wholeNumber } from '../kinds.ts';
import type { Option, Values } from '../option.ts';

/** Ratings that are not trained on: a file, or a part of the given ratings. */
export const heldOutOptions = {
  test: text({
    describe: 'ratings that are not trained on, to measure the error on',
    group: 'Held-out ratings:',
  }),
  testFraction: decimal({
    describe: 'hold out this part of the ratings, such as 0.1',
    group: 'Held-out ratings:',
    above: 0,
    below: 1,
  }),
  testLeaveOut: wholeNumber({
    describe: 'hold out this number of ratings of each user who has more',
    group: 'Held-out ratings:',
    least: 1,
    most: 1000,
  }),
  testBy: choice({
    describe: 'hold out ratings at random, or the last by --timestamp-col',
    group: 'Held-out ratings:',
    choices: ['random', 'time'],
    fallback: 'random',
  }),
};

/** Only for `train`: writes the held-out ratings. */
export const testOutputOption = text({
  describe:
    'write the ratings that were held out: .parquet, .csv, .tsv, .ndjson, .arrow, or a folder; split writes those to train on as well',
  group: 'Held-out ratings:',
});

/** Number of users for ranking metrics, for every command that ranks. */
export const rankUsersOption = countOr('all', {
  describe: 'most users to rank, drawn by the seed, or all',
  group: 'Ranking:',
  defaultText: '10000',
  least: 1,
});

/** For commands that train and can rank held-out ratings. */
export const heldOutRankingOptions = {
  ranking: {
    ...toggle({
      describe: 'rank held-out ratings by the model, next to popularity; --no-ranking leaves it out',
      group: 'Ranking:',
      defaultText: 'implicit data only',
    }),
    fallback: undefined,
    isNegatable: true,
  } satisfies Option<boolean | undefined>,
  rankUsers: rankUsersOption,
};

type HeldOutValues = Values<typeof heldOutOptions> & {
  readonly timestampCol?: string;
  readonly onDuplicates: string;
  readonly earlyStop?: number;
  readonly targetRmse?: number;
};

/** Throws UsageError for flags that exclude each other or have no effect. */
export function checkHeldOut(values: HeldOutValues, given: ReadonlySet<string>): void {
  const kinds = (
    [
      ['--test', values.test],
      ['--test-fraction', values.testFraction],
      ['--test-leave-out', values.testLeaveOut],
    ] as const
  ).filter(([, value]) => value !== undefined);
  if (kinds.length > 1)
    throw new UsageError(`${kinds[0][0]} and ${kinds[1][0]} exclude each other`, {
      advice: 'Leave one of them out',
    });
  const drawn = values.testFraction !== undefined || values.testLeaveOut !== undefined;
  if (given.has('testBy') && !drawn)
    throw new UsageError('--test-by acts only with --test-fraction or --test-leave-out', {
      advice: 'Leave it out, or say how many ratings are held out',
    });
  for (const [flag, value] of [
    ['--early-stop', values.earlyStop],
    ['--target-rmse', values.targetRmse],
  ] as const) {
    if (value !== undefined && kinds.length === 0)
      throw new UsageError(`${flag} needs held-out ratings`, {
        advice: 'Give them with --test PATH or --test-fraction 0.1',
      });
  }
  if (values.timestampCol !== undefined && values.onDuplicates !== 'last' && values.testBy !== 'time') {
    throw new UsageError('--timestamp-col acts only with --on-duplicates last or --test-by time', {
      advice: 'Leave one of them out',
    });
  }
}
