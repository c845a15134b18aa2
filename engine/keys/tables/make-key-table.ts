import { Int32KeyTable } from './int32-key-table.ts';
import { Int64KeyTable } from './int64-key-table.ts';
import { type KeyColumn, keyCount, type KeyType } from '../key-column.ts';
import type { KeyTable } from './key-table.ts';
import { Utf8KeyTable } from './utf8-key-table.ts';

export function makeKeyTable(type: KeyType): KeyTable {
  if (type === 'int32') return new Int32KeyTable();
  return type === 'int64' ? new Int64KeyTable() : new Utf8KeyTable();
}

/** A table in which the keys of the column have their positions as numbers; the keys must be distinct. */
export function keyTableOf(column: KeyColumn): KeyTable {
  const table = makeKeyTable(column.type);
  table.add(column, new Uint32Array(keyCount(column)));
  return table;
}
