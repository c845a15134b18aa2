import type { AlsOptions } from '../../../api/training/als.ts';
import { choices } from '../../../api/check-objects.ts';
import { UsageError } from '../../../engine/errors.ts';
import { choice, text } from '../kinds.ts';
import type { Option, Values } from '../option.ts';

const duplicatePolicies = [
  'keep',
  'error',
  'last',
  'mean',
  'sum',
] as const satisfies readonly AlsOptions['onDuplicates'][];

/** Names of the columns of pairs. */
export const pairColumnOptions = {
  userCol: text({
    describe: 'column of user ids: whole numbers of any kind, text or UUIDs',
    group: 'Data:',
    defaultText: 'user, or one such as userId, user_id, uid',
  }),
  itemCol: text({
    describe: 'column of item ids',
    group: 'Data:',
    defaultText: 'item, or one such as movieId, product_id, asin',
  }),
};

/** Names of the columns. */
export const columnOptions = {
  ...pairColumnOptions,
  ratingCol: text({
    describe: 'column of ratings',
    group: 'Data:',
    defaultText: 'rating, or one such as score, stars',
  }),
};

/** Column names given by flags. */
export type ColumnValues = {
  readonly [Name in 'userCol' | 'itemCol' | 'ratingCol' | 'timestampCol']?: string | undefined;
};

export const badRowsOption = choice({
  describe: 'policy for rows with values that are missing, cannot be read, or are NaN or infinite',
  group: 'Data:',
  choices: ['error', 'skip'],
  fallback: 'error',
});

/** Policies for repeated and bad rows. */
export const policyOptions = {
  timestampCol: text({
    describe: 'column of times, for --on-duplicates last and --test-by time',
    group: 'Data:',
    defaultText: 'timestamp, or one such as time, date, ts',
  }),
  onDuplicates: choice({
    describe: 'policy for several ratings of one user and item',
    group: 'Data:',
    choices: duplicatePolicies,
    fallback: 'keep',
  }),
  onBadRows: badRowsOption,
};

/** Format of ratings that a command reads. */
export const formatOption = choice({
  describe: 'format of the ratings, if the files do not show it',
  group: 'Data:',
  choices: choices.formats,
  defaultText: "by the files' endings and first bytes",
});

/** Filters and computed columns for the rows that a command reads. */
export const rowOptions = {
  with: {
    describe:
      'a column computed from others, as SQL writes it: "rating = log1p(plays)"; may be given more than once',
    group: 'Data:',
    isList: true,
    fallback: undefined,
    read: (given, flag) =>
      (Array.isArray(given) ? given : [given]).map((one): ComputedColumn => {
        const [, name, text] =
          (typeof one === 'string' && /^\s*([^=<>!]+?)\s*=(?!=)\s*(.+)$/s.exec(one)) || [];
        if (name !== undefined && text !== undefined)
          return { name: name.replaceAll(/^["`]|["`]$/g, ''), text };
        throw new UsageError(`${flag} takes NAME = EXPRESSION, got ${JSON.stringify(one)}`);
      }),
  } satisfies Option<readonly ComputedColumn[] | undefined>,
  where: text({
    describe: `the rows to keep, as SQL writes it: "rating >= 3.5 and ts < '2024-01-01'"; after --with`,
    group: 'Data:',
  }),
};

/** A column computed by --with. */
export interface ComputedColumn {
  readonly name: string;
  readonly text: string;
}

export type RowValues = Partial<Values<typeof rowOptions>>;
