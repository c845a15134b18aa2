import { sharedArray } from '../../../engine/partition.ts';

/** The vectors of each list: list l has members[offsets[l]] .. members[offsets[l + 1] - 1], ascending. */
export interface ListMembers {
  readonly members: Uint32Array;
  readonly offsets: Uint32Array;
}

/**
 * Sorts vectors by list, keeping their order. `rows`: the vector of each entry of `assigned`; default the
 * entry's own number.
 *
 *     assigned 1 0 1   ->   members 1 0 2   offsets 0 1 3
 */
export function byList(assigned: Uint32Array, lists: number, rows?: Uint32Array): ListMembers {
  const offsets = sharedArray(Uint32Array, lists + 1);
  for (const list of assigned) offsets[list + 1]++;
  for (let list = 0; list < lists; list++) offsets[list + 1] += offsets[list];
  const next = offsets.slice(0, lists);
  const members = sharedArray(Uint32Array, assigned.length);
  for (let i = 0; i < assigned.length; i++) members[next[assigned[i]]++] = rows === undefined ? i : rows[i];
  return { members, offsets };
}

/** The first `lists` vectors of a sample, one for each list. */
export function firstMembers(sample: Uint32Array, lists: number): ListMembers {
  const offsets = sharedArray(Uint32Array, lists + 1);
  for (let list = 0; list <= lists; list++) offsets[list] = Math.min(list, sample.length);
  return { members: sample, offsets };
}

/**
 * Of two centers of a split list, one is moved by this part of its length along each feature, and one back.
 */
const SPLIT = 1 / 1024;

/**
 * Gives each empty list a center next to the center of the list with the most members, whose members the two
 * then share.
 */
export function splitEmpty(means: Float32Array, offsets: Uint32Array, rank: number): void {
  const lists = offsets.length - 1;
  const sizes = Float64Array.from({ length: lists }, (_, list) => offsets[list + 1] - offsets[list]);
  const empty = [...sizes.keys()].filter((list) => sizes[list] === 0);
  if (empty.length === 0) return;
  const largest = [...sizes.keys()].sort((left, right) => sizes[right] - sizes[left] || left - right);
  empty.forEach((list, i) => {
    const from = largest[i % Math.max(1, lists - empty.length)];
    for (let k = 0; k < rank; k++) {
      const value = means[from * rank + k];
      const sign = (k + list) % 2 === 0 ? 1 : -1;
      means[list * rank + k] = value * (1 + sign * SPLIT);
      means[from * rank + k] = value * (1 - sign * SPLIT);
    }
  });
}
