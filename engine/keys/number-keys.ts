import { type Partition, sharedArray } from '../partition.ts';
import { hashesOf } from './key-hash.ts';
import { widen } from './key-lookup.ts';
import { keyArrays, type KeyColumn, takeKeys } from './key-column.ts';
import type { KeyTable } from './tables/key-table.ts';
import { makeKeyTable } from './tables/make-key-table.ts';

/**
 * The ids of one chunk of rows as codes of 32 bits, of two kinds:
 *
 *     near     the code of an id is its distance from the least one of the chunk; `keys` (layout id-counts) has in `counts` the number of times that
 *              each occurs, by code, or nothing where the ids lie so far apart that most would be 0
 *     coded    codes 0.. in the order of first rows; `keys` (layout keys) has the distinct ids by code, prefix "key", their `counts` and `hashes`
 */
export interface NumberedKeys {
  readonly codes: Uint32Array;
  readonly keys: Partition;
  readonly summary: KeysSummary;
}

/** `range`: the least and the greatest id where codes are near; `size`: distinct ids where they are coded. */
export type KeysSummary =
  | { readonly range: readonly [least: number, greatest: number] }
  | { readonly size: number };

/** True where the keys of a chunk of near ids have counts. */
export function isCounted(width: number, rows: number): boolean {
  return width <= 4 * rows + 1024;
}

/** Codes by way of a hash table. `wide`: int32 ids that are among int64 ones. */
export function codedKeys(column: KeyColumn, codes: Uint32Array, wide = false): NumberedKeys {
  const table = makeKeyTable(column.type);
  table.add(column, codes);
  return keysOfTable(table, codes, wide);
}

/** The keys of a table that has numbered rows; `codes` are the rows' codes. */
export function keysOfTable(table: KeyTable, codes: Uint32Array, wide = false): NumberedKeys {
  const every = Uint32Array.from({ length: table.size }, (_, code) => code);
  const counts = sharedArray(Int32Array, table.size);
  for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
  const keys = takeKeys(wide ? widen(table.keys()) : table.keys(), every);
  return {
    codes,
    keys: {
      layout: 'keys',
      rows: table.size,
      columns: { ...keyArrays(keys, 'key'), counts, hashes: hashesOf(keys) },
    },
    summary: { size: table.size },
  };
}
