import type { SortKey } from './sort-keys.ts';

/** Keys in SQL's form, with the position of nulls if given: "user", "time desc nulls first". */
export function printKeys(keys: readonly SortKey[]): string[] {
  return keys.map(({ column, descending, nulls }) =>
    [column, ...(descending ? ['desc'] : []), ...(nulls === undefined ? [] : [`nulls ${nulls}`])].join(' '),
  );
}
