import type { IndexUse } from '../../../api/serving/index-use.ts';
import { UsageError } from '../../../engine/errors.ts';
import { shown } from '../kinds.ts';
import type { Option } from '../option.ts';

const uses: Readonly<Record<string, IndexUse>> = { auto: 'auto', on: true, off: false };

/** The use of the index that `factorflow index` makes. */
export const indexOption: Option<IndexUse> = {
  describe:
    'search the index that "factorflow index" made: auto (from 1,000,000 items on), on, off (exact), or a ' +
    'number of lists to search',
  group: 'Data:',
  defaultText: 'auto',
  fallback: 'auto',
  read: (given, flag) => {
    const use = typeof given === 'boolean' ? given : uses[String(given)];
    if (use !== undefined) return use;
    const lists = typeof given === 'number' || typeof given === 'string' ? Number(given) : Number.NaN;
    if (String(given).trim() !== '' && Number.isSafeInteger(lists) && lists >= 1) return lists;
    throw new UsageError(`${flag} must be auto, on, off or a number of lists, got ${shown(given)}`);
  },
};
