import { UsageError } from '../../../engine/errors.ts';
import { dateIn } from '../../../api/check-objects.ts';
import { decimal, text, wholeNumber } from '../kinds.ts';
import { flagName, type Option, type Values } from '../option.ts';
import { heldOutOptions } from './held-out-options.ts';

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
