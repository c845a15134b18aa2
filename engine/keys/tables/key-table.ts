import type { KeyColumn, KeyType } from '../key-column.ts';

/** The result of `find` for a key that is not in the table. */
export const UNKNOWN_KEY = 0xffff_ffff;

/**
 * Assigns the numbers 0, 1, 2, ... to distinct keys, in the order in which they are first added. Columns
 * must have the table's type. Open addressing; at most 2^30 distinct keys.
 */
export interface KeyTable {
  readonly type: KeyType;
  readonly size: number;
  /** Writes the number of each key to `codes`; new keys are added. */
  add(column: KeyColumn, codes: Uint32Array): void;
  /** Writes the number of each key, or UNKNOWN_KEY. */
  find(column: KeyColumn, codes: Uint32Array): void;
  /** The keys by number. */
  keys(): KeyColumn;
  /** Key numbers in ascending order of the keys: integers by value, utf8 by bytes (= by code point). */
  ascending(): Uint32Array;
}
