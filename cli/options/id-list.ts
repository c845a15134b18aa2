import { UsageError } from '../../engine/errors.ts';

/** The ids of a flag's value such as "1, 2,3". */
export function idList(given: string, flag: string): string[] {
  const ids = given.split(',').map((id) => id.trim());
  if (ids.includes('')) throw new UsageError(`${flag} holds an empty id: "${given}"`, { advice: 'Give ids such as 1,2,3' });
  return ids;
}
