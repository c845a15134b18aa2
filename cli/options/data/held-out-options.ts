import { UsageError } from '../../../engine/errors.ts';
import { choice, countOr, decimal, text, toggle, wholeNumber } from '../kinds.ts';
import { type Option, type Values, flagName } from '../option.ts';
import { dateIn } from '../../../api/check-objects.ts';

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

const group = 'Held-out ratings:';

/** "881250949", or a date such as 2024-06-01. */
const beforeOption: Option<number | Date | undefined> = {
  describe:
    'train on the rows before this time and test on the others: a number in the unit of --timestamp-col, or a date such as 2024-06-01',
  group,
  fallback: undefined,
  read: (given, flag) => {
    const word = typeof given === 'number' ? String(given) : given;
    const isText = typeof word === 'string' && word.trim() !== '';
    if (isText && Number.isFinite(Number(word))) return Number(word);
    const date = isText ? dateIn(word) : undefined;
    if (date !== undefined) return date;
    throw new UsageError(
      `${flag} must be a number or a date such as 2024-06-01, got ${JSON.stringify(given)}`,
    );
  },
};

/** The kinds of splits; the flags of `train` are shared. */
export const splitOptions = {
  testFraction: { ...heldOutOptions.testFraction, describe: 'test on this part of the ratings, such as 0.1' },
  validationFraction: decimal({
    describe: 'with --test-fraction: another part, DIR/validation',
    group,
    above: 0,
    below: 1,
  }),
  testLeaveOut: {
    ...heldOutOptions.testLeaveOut,
    describe: 'test on this number of ratings of each user who has more',
  },
  folds: wholeNumber({
    describe: 'folds of a cross-validation: DIR/fold-1/train, DIR/fold-1/test and so on',
    group,
    least: 2,
    most: 1000,
  }),
  before: beforeOption,
  testBy: {
    ...heldOutOptions.testBy,
    describe: 'with --test-fraction or --test-leave-out: ratings at random, or the last by --timestamp-col',
  },
  timestampCol: text({
    describe: 'column of times, for --test-by time and --before',
    group: 'Data:',
    defaultText: 'timestamp',
  }),
  seed: wholeNumber({
    describe: 'seed of a random split',
    group,
    least: 0,
    most: 2 ** 32 - 1,
    fallback: 0,
  }),
};

export type SplitValues = Values<typeof splitOptions>;

const kinds = ['testFraction', 'testLeaveOut', 'folds', 'before'] as const;

/** Throws UsageError unless exactly one split is chosen, and for flags that have no effect on it. */
export function checkSplit(values: SplitValues, given: ReadonlySet<string>): void {
  const named = kinds.filter((name) => values[name] !== undefined);
  const flag = (name: string) => `--${flagName(name)}`;
  if (named.length === 0)
    throw new UsageError('split needs a kind of split', {
      advice: `Give one of ${kinds.map(flag).join(', ')}, such as --test-fraction 0.1`,
    });
  if (named.length > 1)
    throw new UsageError(`${flag(named[0])} and ${flag(named[1])} exclude each other`, {
      advice: 'Leave one of them out',
    });
  const [kind] = named;
  const byTime = kind === 'before' || values.testBy === 'time';
  const idle = (name: string, acts: boolean, only: string) => {
    if (given.has(name) && !acts)
      throw new UsageError(`${flag(name)} acts only ${only}`, { advice: 'Leave one of them out' });
  };
  idle(
    'testBy',
    kind === 'testFraction' || kind === 'testLeaveOut',
    'with --test-fraction or --test-leave-out',
  );
  idle('validationFraction', kind === 'testFraction', 'with --test-fraction');
  idle('timestampCol', byTime, 'with --test-by time or --before');
  idle('seed', !byTime, 'on a split at random');
  const { testFraction = 0, validationFraction = 0 } = values;
  if (testFraction + validationFraction >= 1)
    throw new UsageError(
      `--test-fraction ${testFraction} and --validation-fraction ${validationFraction} leave nothing to train on`,
      { advice: 'Their sum must be below 1' },
    );
}
