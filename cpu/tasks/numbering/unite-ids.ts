import {
  compareKeys,
  type KeyColumn,
  UNKNOWN_KEY,
  keyArrays,
  keyCount,
  keysFromArrays,
  takeKeys,
} from '../../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../../engine/keys/tables/make-key-table.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `unite-ids` of KernelTasks. */
export const uniteIds: TaskHandler<'unite-ids'> = (scope) => {
  const { share, shares, chunks } = scope.params;
  const table = makeKeyTable(keysFromArrays(scope.partition('keys.0').columns, 'key').type);
  let totals = new Int32Array(1024);
  const found: { readonly codes: Uint32Array; readonly numbers: Uint32Array }[] = [];
  for (let chunk = 0; chunk < chunks && !scope.cancelled(); chunk++) {
    const { columns } = scope.partition(`keys.${chunk}`);
    const keys = keysFromArrays(columns, 'key');
    const codes = ofShare(columns.hashes as Int32Array, share, shares);
    const numbers = new Uint32Array(codes.length);
    table.add(takeKeys(keys, codes), numbers);
    if (table.size > totals.length) {
      const more = new Int32Array(2 * table.size);
      more.set(totals);
      totals = more;
    }
    const counts = columns.counts as Int32Array;
    for (let i = 0; i < codes.length; i++) totals[numbers[i]] += counts[codes[i]];
    found.push({ codes, numbers });
  }
  const order = table.ascending();
  const places = new Uint32Array(order.length);
  for (let place = 0; place < order.length; place++) places[order[place]] = place;
  found.forEach(({ codes, numbers }, chunk) => {
    const map = scope.partition(`map.${chunk}`).columns.map as Uint32Array;
    for (let i = 0; i < codes.length; i++) map[codes[i]] = places[numbers[i]] * shares + share;
  });
  const counts = sharedArray(Int32Array, order.length);
  for (let place = 0; place < order.length; place++) counts[place] = totals[order[place]];
  const keys = takeKeys(table.keys(), order);
  const united = { layout: 'keys', rows: order.length, columns: { ...keyArrays(keys, 'key'), counts } };
  return {
    rows: order.length,
    partitions: { share: united },
    values: { size: order.length, textBytes: keys.type === 'utf8' ? keys.bytes.length : 0 },
  };
};

/**
 * The indices of the hashes that belong to a share. Shares are equal ranges of a hash's upper 16 bits,
 * because hash tables use the lower bits.
 */
function ofShare(hashes: Int32Array, share: number, shares: number): Uint32Array {
  const found = new Uint32Array(hashes.length);
  let count = 0;
  for (let i = 0; i < hashes.length; i++)
    if (Math.imul(hashes[i] >>> 16, shares) >>> 16 === share) found[count++] = i;
  return found.subarray(0, count);
}

/** See `merge-ids` of KernelTasks. */
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

/** See `compose-maps` of KernelTasks. */
export const composeMaps: TaskHandler<'compose-maps'> = (scope) => {
  const [first, second] = ['first', 'second'].map((name) => scope.partition(name).columns.map as Uint32Array);
  const map = sharedArray(Uint32Array, first.length);
  for (let code = 0; code < map.length; code++) map[code] = second[first[code]];
  return { rows: map.length, partitions: { map: { layout: 'map', rows: map.length, columns: { map } } } };
};

/** See `keep-known` of KernelTasks. */
export const keepKnown: TaskHandler<'keep-known'> = (scope) => {
  const codes = scope.partition('codes').columns as { users: Uint32Array; items: Uint32Array };
  const given = scope.partition('values').columns.values as Float32Array;
  const [userMap, itemMap] = ['userMap', 'itemMap'].map(
    (name) => scope.partition(name).columns.map as Uint32Array,
  );
  const isKnown = (k: number) =>
    userMap[codes.users[k]] !== UNKNOWN_KEY && itemMap[codes.items[k]] !== UNKNOWN_KEY;
  let rows = 0;
  for (let k = 0; k < given.length; k++) if (isKnown(k)) rows++;
  const [users, items, values] = [
    sharedArray(Uint32Array, rows),
    sharedArray(Uint32Array, rows),
    sharedArray(Float32Array, rows),
  ];
  for (let k = 0, at = 0; k < given.length; k++) {
    if (!isKnown(k)) continue;
    users[at] = userMap[codes.users[k]];
    items[at] = itemMap[codes.items[k]];
    values[at++] = given[k];
  }
  return {
    rows: given.length,
    partitions: {
      known: { layout: 'coded-pairs', rows, columns: { users, items } },
      ratings: { layout: 'values', rows, columns: { values } },
    },
    values: { rows },
  };
};
