import { type TextType, textTypes } from '../../connectors/text/text-type.ts';
import { UsageError } from '../../engine/errors.ts';
import { list, textOf } from './kinds.ts';
import type { Option } from './option.ts';

/** "user=int64,item=utf8" */
export const columnTypesOption: Option<Readonly<Record<string, TextType>> | undefined> = {
  describe: `types of columns of a text input, such as user=int64,item=utf8 (${textTypes.join(', ')})`,
  group: 'Data:',
  fallback: undefined,
  read: (given, flag) => {
    const entries = textOf(given, flag).split(',').map((part) => part.split('='));
    return Object.fromEntries(
      entries.map(([name, type, ...more]) => {
        const known = textTypes.find((candidate) => candidate === type?.trim());
        if (known === undefined || name.trim() === '' || more.length > 0) throw new UsageError(`${flag} takes column=type with commas between, type one of ${list(textTypes)}, got "${textOf(given, flag)}"`);
        return [name.trim(), known];
      }),
    );
  },
};
