import { keyArrays, type KeyColumn, keysFromArrays, takeKeys } from '../../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../../engine/keys/make-key-table.ts';
import { type Partition, sharedArray } from '../../../engine/partition.ts';
import type { TaskHandler } from '../../handler.ts';

/** See `number-keys` of KernelTasks. */
export const numberKeys: TaskHandler<'number-keys'> = (scope) => {
  const { rows } = scope.params;
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

interface Encoded {
  readonly codes: Uint32Array;
  readonly keys: Partition;
}

function encode(column: KeyColumn, rows: number): Encoded {
  const dense = column.type === 'int32' ? encodeDense(column.values) : undefined;
  if (dense) return dense;
  const codes = sharedArray(Uint32Array, rows);
  const table = makeKeyTable(column.type);
  table.add(column, codes);
  const every = Uint32Array.from({ length: table.size }, (_, code) => code);
  const counts = sharedArray(Int32Array, table.size);
  for (let i = 0; i < rows; i++) counts[codes[i]]++;
  return { codes, keys: keysPartition(takeKeys(table.keys(), every), counts) };
}

/** Ids that lie close together, as most do, are numbered by a plain table of their range. */
function encodeDense(values: Int32Array): Encoded | undefined {
  let [least, most] = [values[0], values[0]];
  for (let i = 1; i < values.length; i++) {
    const value = values[i];
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const range = most - least + 1;
  if (range > 4 * values.length) return undefined;
  const histogram = new Int32Array(range);
  for (let i = 0; i < values.length; i++) histogram[values[i] - least]++;
  let distinct = 0;
  for (let offset = 0; offset < range; offset++) if (histogram[offset] > 0) distinct++;
  const counts = sharedArray(Int32Array, distinct);
  const keys = sharedArray(Int32Array, distinct);
  for (let offset = 0, code = 0; offset < range; offset++) {
    if (histogram[offset] === 0) continue;
    keys[code] = least + offset;
    counts[code] = histogram[offset];
    histogram[offset] = code++;
  }
  const codes = sharedArray(Uint32Array, values.length);
  for (let i = 0; i < values.length; i++) codes[i] = histogram[values[i] - least];
  return { codes, keys: keysPartition({ type: 'int32', values: keys }, counts) };
}

function keysPartition(keys: KeyColumn, counts: Int32Array): Partition {
  return { layout: 'keys', rows: counts.length, columns: { ...keyArrays(keys, 'key'), counts } };
}
