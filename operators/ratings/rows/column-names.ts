import { UsageError } from '../../../engine/errors.ts';

/**
 * Names of a data set's columns by their role. A role without a name here is found by its usual name, or by a
 * similar one.
 */
export interface ColumnNames {
  readonly user?: string;
  readonly item?: string;
  readonly rating?: string;
  readonly timestamp?: string;
}

export type ColumnRole = keyof ColumnNames;

/** Default name of each column. */
export const usualNames = {
  user: 'user',
  item: 'item',
  rating: 'rating',
  timestamp: 'timestamp',
} as const satisfies Required<ColumnNames>;

/** The option that sets the column of each role. */
export const roleOptions = {
  user: 'userCol',
  item: 'itemCol',
  rating: 'ratingCol',
  timestamp: 'timestampCol',
} as const satisfies Required<ColumnNames>;

const things =
  'item|movie|film|book|product|business|track|song|artist|album|game|article|news|place|venue|poi|restaurant|recipe|beer|anime|joke|video|show|podcast|listing';

/**
 * Column names by which a role is recognised; they are matched in lower case, without spaces and punctuation.
 */
const patterns: Readonly<Record<ColumnRole, RegExp>> = {
  user: /^(user|customer|client|member|account|visitor|reviewer|reader|listener|player|profile)id$|^(uid|users|customer|reviewer)$/,
  item: new RegExp(`^(${things})s?id$|^(iid|items|product|movie|asin|parentasin|isbn|sku)$`),
  rating:
    /^(user|item|movie|film|book|product|review|star|overall)?(rating|score)s?$|^(stars?|overall|rate|grade)$/,
  timestamp:
    /^(unix)?(review|rating|rated|event|created|added)?(time|timestamp|timestamps|date|datetime)$|^(ts|createdat|ratedat|updatedat)$/,
};

/** Column names of amounts, which are the ratings of implicit data; matched as `patterns`. */
const amounts =
  /^(weights?|strength|confidence|freq|frequency|quantity|quantities|qty|(num|number|total)?(of)?(count|play|listen|scrobble|stream|view|watch|click|visit|purchase|order|interaction)s?|(play|listen|stream|view|watch|click|visit|purchase|order|interaction)s?counts?)$/;

/** True if the column's name is usual for the role. */
export function isNamedLike(column: string, role: ColumnRole): boolean {
  return column === usualNames[role] || patterns[role].test(plain(column));
}

/** True if the column's name is usual for amounts, such as "plays" or "Quantity". */
export function isAmountName(column: string): boolean {
  return amounts.test(plain(column));
}

/** True if the column's name ends as names of ids do: "order_id", "sessionId", "SKU ID". */
export function isIdName(column: string): boolean {
  return /(^|[^A-Za-z0-9])(id|ids|ID|IDs|Id)$|[a-z]I[dD]$/.test(column) || column.toLowerCase() === 'index';
}

function plain(column: string): string {
  return column.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** Names of a data set's columns, from three sources: the data set, options, and preferences. */
export interface WantedColumns {
  readonly named?: ColumnNames;
  /** Names from options; they must agree with the data set's. */
  readonly given?: ColumnNames;
  /** Used if the data have such columns, and nothing else is given. */
  readonly preferred?: ColumnNames;
}

/** Merges the data set's names and the options' names. Throws UsageError that names both if they disagree. */
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
