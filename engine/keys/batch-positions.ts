import type { RecordBatch } from 'apache-arrow';
import { hasNulls, isNullAt, keysFromData, keyTypeOf, refusedIn } from './arrow-keys.ts';
import type { KeyLookup } from './key-lookup.ts';
import { UNKNOWN_KEY } from './tables/key-table.ts';

/**
 * Returns the position of the key in each row of a batch's column; UNKNOWN_KEY if the row is null or its key
 * is not in the lookup. Throws DataError for a value that is not an exact id, and for keys that cannot be
 * compared.
 */
export function batchPositions(lookup: KeyLookup, batch: RecordBatch, column: string): Uint32Array {
  const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === column)];
  const type = keyTypeOf(data.type, column);
  lookup.requireComparable(type, column);
  const codes = lookup.positionsOf(keysFromData(data, type, refusedIn(batch, column)));
  if (hasNulls(data)) for (let i = 0; i < codes.length; i++) if (isNullAt(data, i)) codes[i] = UNKNOWN_KEY;
  return codes;
}
