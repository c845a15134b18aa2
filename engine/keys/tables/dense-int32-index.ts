import type { KeyColumn } from '../key-column.ts';
import { type KeyTable, UNKNOWN_KEY } from './key-table.ts';

/** Finds int32 keys that lie close together by a plain table of their range: one look-up a key. */
export class DenseInt32Index implements Pick<KeyTable, 'find'> {
  readonly #least: number;
  readonly #codes: Uint32Array;

  private constructor(least: number, codes: Uint32Array) {
    this.#least = least;
    this.#codes = codes;
  }

  /**
   * Undefined where the range of the keys is too large for their number. Positions of distinct keys are their
   * codes.
   */
  static of(column: KeyColumn): DenseInt32Index | undefined {
    if (column.type !== 'int32' || column.values.length === 0) return undefined;
    let [least, most] = [column.values[0], column.values[0]];
    for (const value of column.values) {
      if (value < least) least = value;
      if (value > most) most = value;
    }
    if (most - least >= 8 * column.values.length + 1024) return undefined;
    const codes = new Uint32Array(most - least + 1).fill(UNKNOWN_KEY);
    column.values.forEach((value, code) => (codes[value - least] = code));
    return new DenseInt32Index(least, codes);
  }

  find(column: KeyColumn, codes: Uint32Array): void {
    const { values } = column as KeyColumn & { type: 'int32' };
    const [all, least, range] = [this.#codes, this.#least, this.#codes.length];
    for (let i = 0; i < values.length; i++) {
      const at = values[i] - least;
      codes[i] = at >= 0 && at < range ? all[at] : UNKNOWN_KEY;
    }
  }
}
