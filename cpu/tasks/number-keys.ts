import { keyArrays, type KeyColumn, keysFromArrays, takeKeys } from '../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../engine/keys/make-key-table.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import type { TaskHandler } from '../handler.ts';

/** See NumberKeysTask. */
export const numberKeys: TaskHandler = (scope) => {
  const rows = scope.params.rows as number;
  const { columns } = scope.partition('ids');
  const users = encode(keysFromArrays(columns, 'user'), rows);
  const items = encode(keysFromArrays(columns, 'item'), rows);
  return {
    rows,
    partitions: {
      codes: { layout: 'coded-pairs', rows, columns: { users: users.codes, items: items.codes } },
      users: users.keys,
      items: items.keys,
    },
  };
};

function encode(column: KeyColumn, rows: number): { codes: Uint32Array; keys: Partition } {
  const codes = sharedArray(Uint32Array, rows);
  const table = makeKeyTable(column.type);
  table.add(column, codes);
  const every = Uint32Array.from({ length: table.size }, (_, code) => code);
  const distinct = takeKeys(table.keys(), every);
  return { codes, keys: { layout: 'keys', rows: table.size, columns: keyArrays(distinct, 'key') } };
}
