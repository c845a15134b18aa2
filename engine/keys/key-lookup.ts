import { DataError } from '../errors.ts';
import { type KeyColumn, keyCount, type KeyTable, type KeyType, widen } from './key-column.ts';
import { keyTableOf } from './tables/make-key-table.ts';

/**
 * Finds the positions of external ids in a column of distinct keys. Integer ids are compared by value, also
 * if their widths differ. Hash tables are built at first use and kept.
 */
export class KeyLookup {
  readonly keys: KeyColumn;
  readonly #tables = new Map<KeyType, Pick<KeyTable, 'find'>>();

  constructor(keys: KeyColumn) {
    this.keys = keys;
  }

  /** The position of each key of a column of a comparable type; UNKNOWN_KEY for an unknown key. */
  positionsOf(column: KeyColumn): Uint32Array {
    const codes = new Uint32Array(keyCount(column));
    const wide = column.type === 'int64' || this.keys.type === 'int64';
    this.#table(wide ? 'int64' : column.type).find(wide ? widen(column) : column, codes);
    return codes;
  }

  /**
   * The key type in which keys of type `type` can be compared with the keys of this lookup: int64 if either
   * of them is int64. Throws DataError if they cannot be compared.
   */
  requireComparable(type: KeyType, column: string): KeyType {
    if ((type === 'utf8') !== (this.keys.type === 'utf8')) {
      throw new DataError(
        `ids are ${type} here, but ${this.keys.type} in the data that they are looked up in`,
        {
          column,
          advice:
            this.keys.type === 'utf8'
              ? 'Where a CSV or NDJSON file holds numbers, the option types reads them as text (utf8)'
              : undefined,
        },
      );
    }
    return type === 'int64' || this.keys.type === 'int64' ? 'int64' : type;
  }

  #table(type: KeyType): Pick<KeyTable, 'find'> {
    let table = this.#tables.get(type);
    if (table === undefined) {
      const keys = type === 'int64' ? widen(this.keys) : this.keys;
      table = keyTableOf(keys);
      this.#tables.set(type, table);
    }
    return table;
  }
}
