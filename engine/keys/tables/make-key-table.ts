import { type Partition, sharedArray } from '../../partition.ts';
import {
  type KeyColumn,
  keyCount,
  type KeyType,
  type KeyTable,
  keyArrays,
  takeKeys,
  wholeKeys,
  type WholeKeys,
  widen,
  wordsOfKeys,
} from '../key-column.ts';
import { hashesOf } from '../key-hash.ts';
import { Utf8KeyTable } from './utf8-key-table.ts';
import { NearInt32Table, WordsTable } from './words-table.ts';

export function makeKeyTable(type: KeyType): KeyTable {
  if (type === 'utf8') return new Utf8KeyTable();
  return new WholeKeyTable(type, type === 'int32' ? new NearInt32Table() : new WordsTable(2));
}

/** A table that numbers each key by its position; the keys must be distinct. */
export function keyTableOf(column: KeyColumn): KeyTable {
  const table =
    column.type === 'int32'
      ? new WholeKeyTable('int32', new NearInt32Table(Infinity))
      : makeKeyTable(column.type);
  table.add(column, new Uint32Array(keyCount(column)));
  return table;
}

/** Integer keys of one or two words. */
class WholeKeyTable implements KeyTable {
  readonly type: 'int32' | 'int64';
  readonly #table: NearInt32Table | WordsTable;

  constructor(type: 'int32' | 'int64', table: NearInt32Table | WordsTable) {
    [this.type, this.#table] = [type, table];
  }

  get size(): number {
    return this.#table.size;
  }

  add(column: KeyColumn, codes: Uint32Array): void {
    this.#table.add(wordsOfKeys(column as WholeKeys), codes);
  }

  find(column: KeyColumn, codes: Uint32Array): void {
    this.#table.find(wordsOfKeys(column as WholeKeys), codes);
  }

  keys(): KeyColumn {
    return wholeKeys(this.type, this.#table.words());
  }

  ascending(): Uint32Array {
    const words = this.#table.words().slice();
    if (this.type === 'int32') words.sort();
    // One native sort of 64-bit integers, without a BigInt per row.
    else new BigInt64Array(words.buffer).sort();
    const order = new Uint32Array(this.size);
    this.#table.find(words, order);
    return order;
  }
}

/**
 * The ids of one chunk of rows as 32-bit codes, of two kinds:
 *
 *     near     the code of an id is its distance from the smallest id of the chunk. `keys` (layout id-counts)
 *              has the number of occurrences by code in `counts`, or nothing if the range of ids is so wide that
 *              most counts would be 0
 *     coded    codes 0, 1, ... in the order of first occurrence. `keys` (layout keys) has the distinct ids by
 *              code (prefix "key"), their `counts` and `hashes`
 */
export interface NumberedKeys {
  readonly codes: Uint32Array;
  readonly keys: Partition;
  readonly summary: KeysSummary;
}

/** `range` (near codes): the smallest and the largest id. `size` (coded): the number of distinct ids. */
export type KeysSummary =
  | { readonly range: readonly [least: number, greatest: number] }
  | { readonly size: number };

/** True if the ids' range is narrow enough for near codes to have counts. */
export function isCounted(width: number, rows: number): boolean {
  return width <= 4 * rows + 1024;
}

/**
 * Numbers the ids of a column with a hash table. `wide`: true to return int32 ids as int64, because other
 * chunks have int64 ids.
 */
export function codedKeys(column: KeyColumn, codes: Uint32Array, wide = false): NumberedKeys {
  const table = makeKeyTable(column.type);
  table.add(column, codes);
  return keysOfTable(table, codes, wide);
}

/** The keys of a hash table that has numbered the rows; `codes`: the code of each row. */
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
