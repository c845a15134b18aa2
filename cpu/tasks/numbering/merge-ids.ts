import { type KeyColumn, keyCount, keysFromArrays, compareKeys } from '../../../engine/keys/key-column.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `merge-ids` of ReadingTasks. */
export const mergeIds: TaskHandler<'merge-ids'> = (scope) => {
  const { shares, part, parts } = scope.params;
  const sources = Array.from({ length: shares }, (_, share) => {
    const { columns } = scope.partition(`share.${share}`);
    return { keys: keysFromArrays(columns, 'key'), counts: columns.counts as Int32Array };
  });
  const next = boundsOf(sources, part, parts);
  const ends = boundsOf(sources, part + 1, parts);
  const { columns } = scope.partition('keys');
  const put = writer(keysFromArrays(columns, 'key'), sources, next);
  const [counts, places] = [
    columns.counts as Int32Array,
    scope.partition('places').columns.map as Uint32Array,
  ];
  const first = next.reduce((sum, from) => sum + from, 0);
  const rows = ends.reduce((sum, end) => sum + end, 0) - first;
  for (let position = first; position < first + rows; position++) {
    let least = -1;
    for (let share = 0; share < shares; share++) {
      if (next[share] === ends[share]) continue;
      if (least < 0 || compareKeys(sources[share].keys, next[share], sources[least].keys, next[least]) < 0)
        least = share;
    }
    const at = next[least]++;
    put(position, least, at);
    counts[position] = sources[least].counts[at];
    places[at * shares + least] = position;
  }
  return { rows };
};

interface ShareKeys {
  readonly keys: KeyColumn;
}

/**
 * Returns the index of a part's first id in each share. The first share's ids, evenly spaced, are the bounds:
 * ids are distributed to shares by hash, so they divide the ids of all shares about evenly.
 */
function boundsOf(sources: readonly ShareKeys[], part: number, parts: number): number[] {
  if (part === 0) return sources.map(() => 0);
  if (part === parts) return sources.map(({ keys }) => keyCount(keys));
  const pivots = sources[0].keys;
  const pivot = Math.floor((keyCount(pivots) * part) / parts);
  // If the first share is empty, all ids are in the last part.
  if (keyCount(pivots) === 0) return sources.map(() => 0);
  return sources.map(({ keys }) => {
    let [from, to] = [0, keyCount(keys)];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (compareKeys(keys, middle, pivots, pivot) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  });
}

/** Returns a function that copies the key at index `at` of a share to `position` of the target. */
function writer(
  target: KeyColumn,
  sources: readonly ShareKeys[],
  starts: readonly number[],
): (position: number, share: number, at: number) => void {
  if (target.type === 'int32') {
    const values = sources.map(({ keys }) => (keys as typeof target).values);
    return (position, share, at) => void (target.values[position] = values[share][at]);
  }
  if (target.type === 'int64') {
    const halves = sources.map(({ keys }) => (keys as typeof target).halves);
    return (position, share, at) => {
      target.halves[2 * position] = halves[share][2 * at];
      target.halves[2 * position + 1] = halves[share][2 * at + 1];
    };
  }
  const texts = sources.map(({ keys }) => keys as typeof target);
  let end = texts.reduce((sum, { offsets }, share) => sum + offsets[starts[share]], 0);
  return (position, share, at) => {
    const { offsets, bytes } = texts[share];
    for (let from = offsets[at]; from < offsets[at + 1]; from++) target.bytes[end++] = bytes[from];
    target.offsets[position + 1] = end;
  };
}
