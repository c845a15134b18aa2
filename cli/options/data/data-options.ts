import type { AlsOptions } from '../../../api/training/als.ts';
import { fileFormats } from '../../../connectors/files/format-names.ts';
import { choice, text } from '../kinds.ts';

const duplicatePolicies = ['keep', 'error', 'last', 'mean', 'sum'] as const satisfies readonly AlsOptions['onDuplicates'][];

/** Names of the columns. */
export const columnOptions = {
  userCol: text({ describe: 'column of user ids: whole numbers of any kind, text or UUIDs', group: 'Data:', fallback: 'user' }),
  itemCol: text({ describe: 'column of item ids', group: 'Data:', fallback: 'item' }),
  ratingCol: text({ describe: 'column of ratings', group: 'Data:', fallback: 'rating' }),
};

export const badRowsOption = choice({ describe: 'policy for rows with values that are missing, cannot be read, or are NaN or infinite', group: 'Data:', choices: ['error', 'skip'], fallback: 'error' });

/** Policies for repeated and bad rows. */
export const policyOptions = {
  timestampCol: text({ describe: 'column of times, for --on-duplicates last and --test-by time', group: 'Data:', defaultText: 'timestamp' }),
  onDuplicates: choice({ describe: 'policy for several ratings of one user and item', group: 'Data:', choices: duplicatePolicies, fallback: 'keep' }),
  onBadRows: badRowsOption,
};

/** Format of ratings that a command reads. */
export const formatOption = choice({ describe: 'format of the ratings, where the files do not tell it', group: 'Data:', choices: fileFormats, defaultText: "by the files' endings and first bytes" });
