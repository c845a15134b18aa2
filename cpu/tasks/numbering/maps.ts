import { UNKNOWN_KEY } from '../../../engine/keys/key-column.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `compose-maps` of ReadingTasks. */
export const composeMaps: TaskHandler<'compose-maps'> = (scope) => {
  const [first, second] = ['first', 'second'].map((name) => scope.partition(name).columns.map as Uint32Array);
  const map = sharedArray(Uint32Array, first.length);
  for (let code = 0; code < map.length; code++) map[code] = second[first[code]];
  return { rows: map.length, partitions: { map: { layout: 'map', rows: map.length, columns: { map } } } };
};

/** See `keep-known` of ReadingTasks. */
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
