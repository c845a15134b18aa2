import { keysFromArrays, keyArrays, type KeyColumn, widen } from '../../../engine/keys/key-column.ts';
import { codedKeys } from '../../../engine/keys/tables/make-key-table.ts';
import { pagedArray, type Partition, sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler, ScopeOf } from '../../handler.ts';
import { numberColumn, TABLE, WINDOW, zeroTable } from './near-keys.ts';

/** See `number-keys` of KernelTasks. */
export const numberKeys: TaskHandler<'number-keys'> = (scope) => {
  const { rows } = scope.params;
  const { columns } = scope.partition('ids');
  // Inputs must not be written.
  const users = numberColumn(scope, keysFromArrays(columns, 'user'), pagedArray(Uint32Array, rows));
  const items = numberColumn(scope, keysFromArrays(columns, 'item'), pagedArray(Uint32Array, rows));
  return {
    rows,
    partitions: { codes: codedPairs(users.codes, items.codes), users: users.keys, items: items.keys },
    values: { rows, users: users.summary, items: items.summary },
  };
};

/** See `recode-ids` of KernelTasks. */
export const recodeIds: TaskHandler<'recode-ids'> = (scope) => {
  const { rows, columns } = scope.partition('codes');
  const recode = (side: 'users' | 'items') => {
    const near = scope.params[side];
    const codes = columns[side] as Uint32Array;
    if (near === null) return { codes };
    return codedKeys(
      { type: 'int32', values: Int32Array.from(codes, (code) => code + near.least) },
      pagedArray(Uint32Array, rows),
      near.wide,
    );
  };
  const [users, items] = [recode('users'), recode('items')];
  return {
    rows,
    partitions: {
      recoded: codedPairs(users.codes, items.codes),
      ...('keys' in users && { users: users.keys }),
      ...('keys' in items && { items: items.keys }),
    },
    values: {
      users: 'summary' in users ? users.summary : null,
      items: 'summary' in items ? items.summary : null,
    },
  };
};

function codedPairs(users: Uint32Array, items: Uint32Array): Partition {
  return { layout: 'coded-pairs', rows: users.length, columns: { users, items } };
}

/** See `count-ids` of KernelTasks. */
export const countIds: TaskHandler<'count-ids'> = (scope) => {
  const { from, to } = scope.params;
  const counts = scope.partition('counts').columns.counts as Int32Array;
  for (let first = from; first < to && !scope.cancelled(); first += TABLE) {
    const table = zeroTable(scope, Math.min(TABLE, to - first));
    countAll(scope, first, table);
    counts.set(table, first);
  }
  return { rows: to - from };
};

/** Counts the ids of all chunks in a table in scratch. Entry 0 of the table counts the id `first`. */
function countAll(scope: ScopeOf<'count-ids'>, first: number, table: Int32Array): void {
  const { starts, side } = scope.params;
  const { kernels, scratch } = scope;
  for (let chunk = 0; chunk < starts.length && !scope.cancelled(); chunk++) {
    const shift = starts[chunk] - first;
    const isCounted = scope.hasInput(`keys.${chunk}`);
    const own = isCounted
      ? (scope.partition(`keys.${chunk}`).columns.counts as Int32Array)
      : (scope.partition(`codes.${chunk}`).columns[side] as Uint32Array);
    const end = isCounted ? Math.min(own.length, table.length - shift) : own.length;
    for (let at = isCounted ? Math.max(0, -shift) : 0; at < end; at += WINDOW) {
      const n = Math.min(WINDOW, end - at);
      new Uint32Array(scope.memory.buffer, scratch, n).set(own.subarray(at, at + n));
      if (isCounted) kernels.addCounts(table.byteOffset + 4 * (at + shift), scratch, n);
      else kernels.countCodes(scratch, n, shift, table.byteOffset, table.length);
    }
  }
}

/** See `rank-ids` of KernelTasks. */
export const rankIds: TaskHandler<'rank-ids'> = (scope) => {
  const { least, wide } = scope.params;
  const { kernels, scratch } = scope;
  const all = scope.partition('counts').columns.counts as Int32Array;
  const [window, ownMap, ownIds, ownCounts] = [0, 1, 2, 3].map(
    (place) => new Int32Array(scope.memory.buffer, scratch + 4 * WINDOW * place, WINDOW),
  );
  const take = (from: number): number => {
    const some = all.subarray(from, from + WINDOW);
    window.set(some);
    return some.length;
  };
  let size = 0;
  for (let from = 0; from < all.length; from += WINDOW) size += kernels.countUsed(scratch, take(from));
  const map = sharedArray(Uint32Array, all.length);
  const [ids, counts] = [sharedArray(Int32Array, size), sharedArray(Int32Array, size)];
  for (let from = 0, position = 0; from < all.length; from += WINDOW) {
    const n = take(from);
    const next = kernels.rankCounts(
      scratch,
      n,
      position,
      least + from,
      ownMap.byteOffset,
      ownIds.byteOffset,
      ownCounts.byteOffset,
    );
    map.set(ownMap.subarray(0, n), from);
    ids.set(ownIds.subarray(0, next - position), position);
    counts.set(ownCounts.subarray(0, next - position), position);
    position = next;
  }
  const narrow: KeyColumn = { type: 'int32', values: ids };
  return {
    rows: all.length,
    partitions: {
      map: { layout: 'map', rows: map.length, columns: { map } },
      keys: {
        layout: 'keys',
        rows: size,
        columns: { ...keyArrays(wide ? widen(narrow) : narrow, 'key'), counts },
      },
    },
    values: { size },
  };
};
