import { UsageError } from '../../../engine/errors.ts';

/** Names of the columns of a data set; one that is left out has its usual name, or is recognised by it. */
export interface ColumnNames {
  readonly user?: string;
  readonly item?: string;
  readonly rating?: string;
  readonly time?: string;
}

export type ColumnRole = keyof ColumnNames;

/** The name of each column where nothing is said. */
export const usualNames = {
  user: 'user',
  item: 'item',
  rating: 'rating',
  time: 'timestamp',
} as const satisfies Required<ColumnNames>;

/** The option that names each column. */
export const roleOptions = {
  user: 'userCol',
  item: 'itemCol',
  rating: 'ratingCol',
  time: 'timestampCol',
} as const satisfies Required<ColumnNames>;

const things =
  'item|movie|film|book|product|business|track|song|artist|album|game|article|news|place|venue|poi|restaurant|recipe|beer|anime|joke|video|show|podcast|listing';

/** Names in lower case without spaces and punctuation. */
const patterns: Readonly<Record<ColumnRole, RegExp>> = {
  user: /^(user|customer|client|member|account|visitor|reviewer|reader|listener|player|profile)id$|^(uid|users|customer|reviewer)$/,
  item: new RegExp(`^(${things})s?id$|^(iid|items|product|movie|asin|parentasin|isbn|sku)$`),
  rating:
    /^(user|item|movie|film|book|product|review|star|overall)?(rating|score)s?$|^(stars?|overall|rate|grade)$/,
  time: /^(unix)?(review|rating|rated|event|created|added)?(time|timestamp|timestamps|date|datetime)$|^(ts|createdat|ratedat|updatedat)$/,
};

/** True for a column whose name is one that a role usually has. */
export function isNamedLike(column: string, role: ColumnRole): boolean {
  return (
    column === usualNames[role] || patterns[role].test(column.toLowerCase().replaceAll(/[^a-z0-9]/g, ''))
  );
}

/**
 * The names of a data set's columns as far as they are said, by the data set, by options, and as defaults.
 */
export interface WantedColumns {
  readonly named?: ColumnNames;
  /** Names by options, which must agree with the data set's names. */
  readonly given?: ColumnNames;
  /** Taken where the data have them, and nothing else is said. */
  readonly preferred?: ColumnNames;
}

/**
 * Throws UsageError, naming both, where options name another column than the data set does; else the names of
 * either.
 */
export function agreedNames({ named = {}, given = {} }: WantedColumns): ColumnNames {
  const entries = (Object.keys(usualNames) as ColumnRole[]).flatMap((role) => {
    const [own, option] = [named[role], given[role]];
    if (own !== undefined && option !== undefined && own !== option) {
      throw new UsageError(
        `the data set names its ${role} column "${own}", but ${roleOptions[role]} is "${option}"`,
        { advice: `Leave one of them out, or name the same column` },
      );
    }
    const name = own ?? option;
    return name === undefined ? [] : [[role, name] as const];
  });
  return Object.fromEntries(entries);
}
