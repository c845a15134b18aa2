import { dateIn } from '../../../api/check-objects.ts';
import { rankUsersParams, splitParams } from '../../../api/option-params.ts';
import { UsageError } from '../../../engine/errors.ts';
import { seedParam } from '../../../operators/params/param.ts';
import { decimal, flagOf, flagsOf, option, text, toggle } from '../kinds.ts';
import { flagName, grouped, type Option, type Values, refuseFlags } from '../option.ts';

/** Ratings that are not trained on: a file, or a part of the given ratings. */
export const heldOutOptions = grouped('Held-out ratings:', {
  test: text('ratings that are not trained on, to measure the error on'),
  testFraction: decimal('hold out this part of the ratings, such as 0.1', { above: 0, below: 1 }),
  testLeaveOut: flagOf(splitParams.leaveOut),
  testBy: flagOf(splitParams.by),
});

/** Only for `train`: writes the held-out ratings. */
export const testOutputOption = text(
  'write the ratings that were held out: .parquet, .csv, .tsv, .ndjson, .arrow, or a folder; split writes those to train on as well',
  { group: 'Held-out ratings:' },
);

/** For commands that train and can rank held-out ratings. */
export const heldOutRankingOptions = grouped('Ranking:', {
  ranking: {
    ...toggle('rank held-out ratings by the model, next to popularity; --no-ranking leaves it out', {
      defaultText: 'implicit data only',
    }),
    fallback: undefined,
    isNegatable: true,
  } satisfies Option<boolean | undefined>,
  ...flagsOf(rankUsersParams),
});

type HeldOutValues = Values<typeof heldOutOptions> & {
  readonly timestampCol?: string;
  readonly onDuplicates: string;
  readonly halfLife?: string;
  readonly earlyStop?: number;
  readonly targetRmse?: number;
};

const LEAVE_OUT = 'Leave one of them out';

/** Throws UsageError for flags that exclude each other or have no effect. */
export function checkHeldOut(values: HeldOutValues, given: ReadonlySet<string>): void {
  const held = (['test', 'testFraction', 'testLeaveOut'] as const).filter(
    (name) => values[name] !== undefined,
  );
  refuseSeveral(held);
  const drawn = values.testFraction !== undefined || values.testLeaveOut !== undefined;
  if (!drawn)
    refuseFlags(
      given,
      ['testBy'],
      'acts only with --test-fraction or --test-leave-out',
      'Leave it out, or say how many ratings are held out',
    );
  if (held.length === 0)
    refuseFlags(
      given,
      ['earlyStop', 'targetRmse'],
      'needs held-out ratings',
      'Give them with --test PATH or --test-fraction 0.1',
    );
  const usesTimes =
    values.onDuplicates === 'last' || values.testBy === 'time' || (values.halfLife ?? 'none') !== 'none';
  if (values.timestampCol !== undefined && !usesTimes) {
    throw new UsageError(
      '--timestamp-col acts only with --half-life, --on-duplicates last or --test-by time',
      {
        advice: LEAVE_OUT,
      },
    );
  }
}

/** Throws UsageError for more than one of flags that exclude each other. */
function refuseSeveral([first, second]: readonly string[]): void {
  if (second !== undefined)
    refuseFlags(new Set([first]), [first], `and --${flagName(second)} exclude each other`, LEAVE_OUT);
}

/** "881250949", or a date such as 2024-06-01. */
const beforeOption = option<number | Date>(
  'train on the rows before this time and test on the others: a number in the unit of --timestamp-col, or a date such as 2024-06-01',
  {},
  'a number or a date such as 2024-06-01',
  (given) => {
    const word = typeof given === 'number' ? String(given) : given;
    if (typeof word !== 'string' || word.trim() === '') return undefined;
    return Number.isFinite(Number(word)) ? Number(word) : dateIn(word);
  },
);

/** The kinds of splits; the flags of `train` are shared. */
export const splitOptions = {
  ...grouped('Held-out ratings:', {
    testFraction: {
      ...heldOutOptions.testFraction,
      describe: 'test on this part of the ratings, such as 0.1',
    },
    validationFraction: decimal('with --test-fraction: another part, DIR/validation', { above: 0, below: 1 }),
    testLeaveOut: {
      ...heldOutOptions.testLeaveOut,
      describe: 'test on this number of ratings of each user who has more',
    },
    coldItems: decimal('test on all ratings of this part of the items, such as 0.1, which are new then', {
      above: 0,
      below: 1,
    }),
    coldUsers: decimal('test on all ratings of this part of the users', { above: 0, below: 1 }),
    folds: flagOf(splitParams.folds),
    before: beforeOption,
    testBy: {
      ...heldOutOptions.testBy,
      describe: 'with --test-fraction or --test-leave-out: ratings at random, or the last by --timestamp-col',
    },
    seed: flagOf({ ...seedParam, help: 'seed of a random split' }),
  }),
  timestampCol: text('column of times, for --test-by time and --before', { defaultText: 'timestamp' }),
};

export type SplitValues = Values<typeof splitOptions>;

const kinds = ['testFraction', 'testLeaveOut', 'coldItems', 'coldUsers', 'folds', 'before'] as const;

/** Throws UsageError unless exactly one split is chosen, and for flags that have no effect on it. */
export function checkSplit(values: SplitValues, given: ReadonlySet<string>): void {
  const named = kinds.filter((name) => values[name] !== undefined);
  if (named.length === 0)
    throw new UsageError('split needs a kind of split', {
      advice: `Give one of ${kinds.map((name) => `--${flagName(name)}`).join(', ')}, such as --test-fraction 0.1`,
    });
  refuseSeveral(named);
  const [kind] = named;
  const byTime = kind === 'before' || values.testBy === 'time';
  const idle = (name: string, acts: boolean, only: string) => {
    if (!acts) refuseFlags(given, [name], `acts only ${only}`, LEAVE_OUT);
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
