import { type KeyColumn, keyCount } from './key-column.ts';
import { sharedArray } from '../partition.ts';
import { spread } from '../random.ts';
import { hashBytes } from './tables/utf8-key-table.ts';
import { hashHalves } from './tables/words-table.ts';

/**
 * Two columns of 32 bits, 64 bits for each key, to seed a random generator for each external id. For
 * integers these are their own bits (the same for int32 and int64), for utf8 keys two hashes of their bytes.
 * The bits are not mixed; the generator does that.
 */
export function keyHashes(column: KeyColumn): { low: Uint32Array; high: Uint32Array } {
  const count = keyCount(column);
  const low = sharedArray(Uint32Array, count);
  const high = sharedArray(Uint32Array, count);
  if (column.type === 'int32') {
    const { values } = column;
    low.set(values.subarray(0, count));
    for (let i = 0; i < count; i++) high[i] = values[i] >> 31;
  } else if (column.type === 'int64') {
    const { halves } = column;
    for (let i = 0; i < count; i++) {
      low[i] = halves[2 * i];
      high[i] = halves[2 * i + 1];
    }
  } else {
    const { bytes, offsets } = column;
    for (let i = 0; i < count; i++) {
      low[i] = hashBytes(bytes, offsets[i], offsets[i + 1], 0);
      high[i] = hashBytes(bytes, offsets[i], offsets[i + 1], 0x5bd1_e995);
    }
  }
  return { low, high };
}

/** A well-mixed 32-bit hash of each key, in shared memory. */
export function hashesOf(column: KeyColumn): Int32Array {
  const hashes = sharedArray(Int32Array, keyCount(column));
  if (column.type === 'int32') for (let i = 0; i < hashes.length; i++) hashes[i] = spread(column.values[i]);
  else if (column.type === 'int64')
    for (let i = 0; i < hashes.length; i++)
      hashes[i] = hashHalves(column.halves[2 * i], column.halves[2 * i + 1]);
  else
    for (let i = 0; i < hashes.length; i++)
      hashes[i] = hashBytes(column.bytes, column.offsets[i], column.offsets[i + 1], 0);
  return hashes;
}
