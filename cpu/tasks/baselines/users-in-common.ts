import type { TaskScope } from '../../handler.ts';

/** Pairs in compressed rows: the columns of row r are indices[offsets[r] .. offsets[r + 1]], ascending. */
export interface Pairs {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
}

export function pairsOf(scope: Pick<TaskScope, 'partition'>, name: string): Pairs {
  return scope.partition(name).columns as unknown as Pairs;
}

/**
 * Adds to `inCommon`, for each item, the number of users that it has in common with an item. Writes the items
 * with such users to `found`, in any order, and returns that part of it. Both arrays have a place for each
 * item.
 */
export function countUsersInCommon(
  item: number,
  byUser: Pairs,
  byItem: Pairs,
  inCommon: Int32Array,
  found: Uint32Array,
): Uint32Array {
  let length = 0;
  for (let k = byItem.offsets[item]; k < byItem.offsets[item + 1]; k++) {
    const user = byItem.indices[k];
    for (let j = byUser.offsets[user]; j < byUser.offsets[user + 1]; j++) {
      const other = byUser.indices[j];
      if (inCommon[other]++ === 0) found[length++] = other;
    }
  }
  return found.subarray(0, length);
}
