import { UsageError } from '../../engine/errors.ts';
import { shown } from './kinds.ts';
import type { Option } from './option.ts';

/** Two whole numbers with a comma between them. */
export const copiesOption: Option<{ readonly users: number; readonly items: number } | undefined> = {
  describe: 'write a grid of U x V copies, along users and along items, such as 160,20',
  group: 'Data:',
  fallback: undefined,
  defaultText: '1,1',
  read: (given, flag) => {
    const match = typeof given === 'string' ? /^\s*(\d{1,9})\s*[,x]\s*(\d{1,9})\s*$/.exec(given) : null;
    const [users, items] = match === null ? [0, 0] : [Number(match[1]), Number(match[2])];
    if (users >= 1 && items >= 1) return { users, items };
    throw new UsageError(`${flag} must be two whole numbers from 1, such as 100,1, got ${shown(given)}`);
  },
};
