import { type Id, idAt } from '../../engine/keys/find-id.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import type { IdColumn } from '../../connectors/model/id-column.ts';

/** The factors of a side as typed arrays, over the model's own memory: copy them before you change them. */
export interface FactorArrays {
  /** Ids, ascending: int32 and int64 as typed arrays without a copy, utf8 as strings. */
  readonly ids: Int32Array | BigInt64Array | readonly Id[];
  /** Row-major, rows x columns: row i belongs to ids[i]. */
  readonly values: Float32Array;
  readonly rows: number;
  /** The rank, and with biases two more. */
  readonly columns: number;
}

export function factorArrays(keys: KeyColumn, values: Float32Array, columns: number): FactorArrays {
  const rows = keyCount(keys);
  const ids = idColumnOf(keys);
  return { ids: ids.type === 'utf8' ? Array.from({ length: rows }, (_, i) => idAt(keys, i)) : ids.values, values, rows, columns };
}

/** Ids in the form of a model's files, without a copy. */
export function idColumnOf(keys: KeyColumn): IdColumn {
  return keys.type === 'int64' ? { type: 'int64', values: new BigInt64Array(keys.halves.buffer, keys.halves.byteOffset, keyCount(keys)) } : keys;
}
