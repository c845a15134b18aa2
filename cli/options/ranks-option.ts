import { UsageError } from '../../engine/errors.ts';
import { MAXIMUM_RANK } from '../../operators/als/params.ts';
import { shown } from './kinds.ts';
import type { Option } from './option.ts';

/** Whole numbers with commas between them. */
export const ranksOption: Option<readonly number[]> = {
  describe: 'for --tune: ranks to tune for',
  group: 'Options:',
  isList: true,
  defaultText: '64,100,128',
  fallback: [64, 100, 128],
  read: (given, flag) => {
    const parts = typeof given === 'number' ? [String(given)] : typeof given === 'string' ? given.split(',').map((part) => part.trim()) : [];
    const ranks = parts.map((part) => (/^\d{1,4}$/.test(part) ? Number(part) : 0));
    if (ranks.length > 0 && ranks.every((rank) => rank >= 1 && rank <= MAXIMUM_RANK)) return [...new Set(ranks)];
    throw new UsageError(`${flag} must be whole numbers from 1 to ${MAXIMUM_RANK} with commas between them, such as 64,100, got ${shown(given)}`);
  },
};
