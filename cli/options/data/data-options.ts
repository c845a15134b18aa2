import { choices, type Choice } from '../../../api/check-objects.ts';
import type { ReadAnyOptions } from '../../../api/readers.ts';
import type { IndexUse } from '../../../api/serving/served-model.ts';
import type { AlsOptions } from '../../../api/training/als.ts';
import { UsageError } from '../../../engine/errors.ts';
import { choice, text, shown, list, listOf, option, readList, toggle } from '../kinds.ts';
import { grouped, type Option, type Values } from '../option.ts';

const duplicatePolicies = [
  'keep',
  'error',
  'last',
  'mean',
  'sum',
] as const satisfies readonly AlsOptions['onDuplicates'][];

/** Names of the columns of pairs. */
export const pairColumnOptions = {
  userCol: text('column of user ids: whole numbers of any kind, text or UUIDs', {
    defaultText: 'user, or one such as userId, user_id, uid',
  }),
  itemCol: text('column of item ids', { defaultText: 'item, or one such as movieId, product_id, asin' }),
};

/** Names of the columns. */
export const columnOptions = {
  ...pairColumnOptions,
  ratingCol: text('column of ratings', { defaultText: 'rating, or one such as score, stars' }),
};

/** Column names given by flags. */
export type ColumnValues = {
  readonly [Name in 'userCol' | 'itemCol' | 'ratingCol' | 'timestampCol']?: string | undefined;
};

export const badRowsOption = choice(
  'policy for rows with values that are missing, cannot be read, or are NaN or infinite',
  { choices: ['error', 'skip'], fallback: 'error' },
);

/** Policies for repeated and bad rows. */
export const policyOptions = {
  timestampCol: text('column of times, for --half-life, --on-duplicates last and --test-by time', {
    defaultText: 'timestamp, or one such as time, date, ts',
  }),
  onDuplicates: choice('policy for several ratings of one user and item', {
    choices: duplicatePolicies,
    fallback: 'keep',
  }),
  onBadRows: badRowsOption,
};

/** Format of ratings that a command reads. */
export const formatOption = choice('format of the ratings, if the files do not show it', {
  choices: choices.formats,
  defaultText: "by the files' endings and first bytes",
});

/** Filters and computed columns for the rows that a command reads. */
export const rowOptions = {
  with: {
    describe:
      'a column computed from others, as SQL writes it: "rating = log1p(plays)"; may be given more than once',
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
  where: text(`the rows to keep, as SQL writes it: "rating >= 3.5 and ts < '2024-01-01'"; after --with`),
};

/** A column computed by --with. */
export interface ComputedColumn {
  readonly name: string;
  readonly text: string;
}

export type RowValues = Partial<Values<typeof rowOptions>>;

const uses: Readonly<Record<string, IndexUse>> = { auto: 'auto', on: true, off: false };

/** The use of the index that `factorflow index` makes. */
export const indexOption = option<IndexUse, IndexUse>(
  'search the index that "factorflow index" made: auto (from 1,000,000 items on), on, off (exact), or a ' +
    'number of lists to search',
  { fallback: 'auto' },
  'auto, on, off or a number of lists',
  (given) => {
    const use = typeof given === 'boolean' ? given : uses[String(given)];
    if (use !== undefined) return use;
    const lists = typeof given === 'number' || typeof given === 'string' ? Number(given) : Number.NaN;
    return String(given).trim() !== '' && Number.isSafeInteger(lists) && lists >= 1 ? lists : undefined;
  },
);

/** "user=int64,item=utf8" */
const columnTypesOption: Option<Readonly<Record<string, Choice<'textTypes'>>> | undefined> = {
  describe: `types of columns, such as user=int64,item=utf8 (${choices.textTypes.join(', ')})`,
  isList: true,
  fallback: undefined,
  read: (given, flag) => {
    const parts =
      typeof given === 'object' && given !== null && !Array.isArray(given)
        ? Object.entries(given).map((entry) => entry.join('='))
        : readList(given, flag);
    return Object.fromEntries(
      parts.map((part) => {
        const at = part.lastIndexOf('=');
        const [name, type] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
        const known = choices.textTypes.find((candidate) => candidate === type);
        if (known === undefined || name === '')
          throw new UsageError(
            `${flag} takes column=type with commas between, type one of ${list(choices.textTypes)}, got "${part}"`,
          );
        return [name, known];
      }),
    );
  },
};

/** A space and a tab count as they are; `\\t` is a tab, too. */
const delimiter: Option<string | undefined> = {
  describe: 'delimiter between the fields, such as ";", "::", " " or "\\t"',
  defaultText: 'by the first lines',
  fallback: undefined,
  read: (given, flag) => {
    if (typeof given === 'string' && given !== '') return given === '\\t' ? '\t' : given;
    throw new UsageError(`${flag} needs a text, got ${shown(given)}`);
  },
};

/** Properties of text files (CSV and similar, NDJSON) that a command reads. */
export const textOptions = grouped('Text:', {
  delimiter,
  quote: choice('character around fields; none: quotes are part of the texts', {
    choices: ['none', '"'],
    defaultText: '", but none between "::", and between tabs if no field is properly quoted',
  }),
  comment: text('skip lines that begin with this text, anywhere; none: there are no comments', {
    defaultText: '% or # at the beginning, where the number of fields is another one',
  }),
  noHeader: toggle('take the first row as data'),
  columns: listOf(
    'names of the columns of a file without a header, separated by commas; for NDJSON the fields to read',
  ),
  types: columnTypesOption,
  nullValues: listOf('texts that mean a missing value in any column, separated by commas', {
    defaultText: 'NA, NULL, None and the like in columns of numbers',
  }),
  decimalComma: toggle('take 4,5 as a number'),
});

/** Flags for reading ratings. */
export const readOptions = { format: formatOption, ...rowOptions, ...textOptions };

export type ReadValues = Values<typeof readOptions>;

/** The flags as the library's options. */
export function readSpec({
  format,
  delimiter,
  quote,
  comment,
  noHeader,
  columns,
  types,
  nullValues,
  decimalComma,
}: Omit<ReadValues, keyof typeof rowOptions>): ReadAnyOptions {
  return {
    format,
    delimiter,
    quotes: quote === undefined ? undefined : quote !== 'none',
    comment: comment === 'none' ? '' : comment,
    header: noHeader ? false : undefined,
    columns,
    types,
    nullValues,
    decimalComma: decimalComma || undefined,
  };
}
