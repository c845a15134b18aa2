import { keysFromArrays } from '../../../engine/keys/key-column.ts';
import { codedKeys } from '../../../engine/keys/tables/make-key-table.ts';
import { pagedArray, type Partition } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';
import { numberColumn } from './near-keys.ts';

/** See `number-keys` of ReadingTasks. */
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

/** See `recode-ids` of ReadingTasks. */
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
