import { type KeyColumn, keyCount, type KeyType } from '../key-column.ts';
import type { KeyTable } from './key-table.ts';
import { NearInt32Table } from './near-int32-table.ts';
import { Utf8KeyTable } from './utf8-key-table.ts';
import { WordsTable } from './words-table.ts';

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
    this.#table.add(wordsOf(column), codes);
  }

  find(column: KeyColumn, codes: Uint32Array): void {
    this.#table.find(wordsOf(column), codes);
  }

  keys(): KeyColumn {
    const words = this.#table.words();
    return this.type === 'int32' ? { type: 'int32', values: words } : { type: 'int64', halves: words };
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

function wordsOf(column: KeyColumn): Int32Array {
  if (column.type === 'utf8') throw new Error('texts are not whole numbers');
  return column.type === 'int32' ? column.values : column.halves;
}
