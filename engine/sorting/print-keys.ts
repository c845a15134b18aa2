import type { SortKey } from './sort-keys.ts';

/** Keys as in SQL, with the place of nulls where it is given: "user", "time desc nulls first". */
export function printKeys(keys: readonly SortKey[]): string[] {
  return keys.map(({ column, descending, nulls }) =>
    [column, ...(descending ? ['desc'] : []), ...(nulls === undefined ? [] : [`nulls ${nulls}`])].join(' '),
  );
}
