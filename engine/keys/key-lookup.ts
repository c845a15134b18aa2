import type { RecordBatch } from 'apache-arrow';
import { DataError } from '../errors.ts';
import { hasNulls, isNullAt, keysFromData, keyTypeOf, refusedIn } from './arrow-keys.ts';
import { type KeyColumn, keyCount, type KeyType } from './key-column.ts';
import { type KeyTable, UNKNOWN_KEY } from './tables/key-table.ts';
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

  /**
   * Returns the position of each row's key; UNKNOWN_KEY if the row is null or its key is not in the lookup.
   * Throws DataError for a value that is not an exact id.
   */
  positions(batch: RecordBatch, column: string): Uint32Array {
    const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === column)];
    const type = this.requireComparable(keyTypeOf(data.type, column), column);
    const codes = new Uint32Array(batch.numRows);
    const keys = keysFromData(data, keyTypeOf(data.type, column), refusedIn(batch, column));
    this.#table(type).find(type === 'int64' ? widen(keys) : keys, codes);
    if (hasNulls(data)) for (let i = 0; i < codes.length; i++) if (isNullAt(data, i)) codes[i] = UNKNOWN_KEY;
    return codes;
  }

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

/** int32 keys as int64; others as they are. */
export function widen(column: KeyColumn): KeyColumn {
  if (column.type !== 'int32') return column;
  const halves = new Int32Array(2 * column.values.length);
  for (let i = 0; i < column.values.length; i++) {
    halves[2 * i] = column.values[i];
    halves[2 * i + 1] = column.values[i] >> 31;
  }
  return { type: 'int64', halves };
}
