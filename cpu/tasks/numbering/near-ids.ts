import { keyArrays, type KeyColumn } from '../../../engine/keys/key-column.ts';
import { widen } from '../../../engine/keys/key-lookup.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `count-ids` of ReadingTasks. */
export const countIds: TaskHandler<'count-ids'> = (scope) => {
  const { from, to, starts, side } = scope.params;
  const counts = (scope.partition('counts').columns.counts as Int32Array).subarray(from, to).fill(0);
  for (let chunk = 0; chunk < starts.length && !scope.cancelled(); chunk++) {
    const shift = starts[chunk] - from;
    if (scope.hasInput(`keys.${chunk}`)) {
      const own = scope.partition(`keys.${chunk}`).columns.counts as Int32Array;
      const end = Math.min(own.length, counts.length - shift);
      for (let code = Math.max(0, -shift); code < end; code++) counts[code + shift] += own[code];
    } else {
      const codes = scope.partition(`codes.${chunk}`).columns[side] as Uint32Array;
      for (let k = 0; k < codes.length; k++) {
        const at = codes[k] + shift;
        if (at >= 0 && at < counts.length) counts[at]++;
      }
    }
  }
  return { rows: to - from };
};

/** See `rank-ids` of ReadingTasks. */
export const rankIds: TaskHandler<'rank-ids'> = (scope) => {
  const { least, wide } = scope.params;
  const all = scope.partition('counts').columns.counts as Int32Array;
  let size = 0;
  for (let i = 0; i < all.length; i++) if (all[i] > 0) size++;
  const map = sharedArray(Uint32Array, all.length);
  const [ids, counts] = [sharedArray(Int32Array, size), sharedArray(Int32Array, size)];
  for (let i = 0, position = 0; i < all.length; i++) {
    if (all[i] === 0) continue;
    map[i] = position;
    ids[position] = i + least;
    counts[position++] = all[i];
  }
  const narrow: KeyColumn = { type: 'int32', values: ids };
  return {
    rows: all.length,
    partitions: {
      map: { layout: 'map', rows: map.length, columns: { map } },
      keys: { layout: 'keys', rows: size, columns: { ...keyArrays(wide ? widen(narrow) : narrow, 'key'), counts } },
    },
    values: { size },
  };
};
