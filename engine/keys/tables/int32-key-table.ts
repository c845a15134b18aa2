import type { KeyColumn } from '../key-column.ts';
import { type KeyTable, UNKNOWN_KEY } from './key-table.ts';
import { Slots, spread } from './slots.ts';

export class Int32KeyTable implements KeyTable {
  readonly type = 'int32';
  size = 0;
  #keys = new Int32Array(64);
  readonly #slots = new Slots();

  add(column: KeyColumn, codes: Uint32Array): void {
    const values = (column as KeyColumn & { type: 'int32' }).values;
    let { table, mask } = this.#slots;
    let keys = this.#keys;
    for (let i = 0; i < values.length; i++) {
      const key = values[i];
      let slot = spread(key) & mask;
      let entry = table[slot];
      while (entry !== 0 && keys[entry - 1] !== key) {
        slot = (slot + 1) & mask;
        entry = table[slot];
      }
      if (entry === 0) {
        if (this.size === keys.length) {
          keys = new Int32Array(2 * keys.length);
          keys.set(this.#keys);
          this.#keys = keys;
        }
        keys[this.size++] = key;
        entry = this.size;
        table[slot] = entry;
        if (this.#slots.isFull(this.size)) {
          this.#rehash();
          ({ table, mask } = this.#slots);
        }
      }
      codes[i] = entry - 1;
    }
  }

  find(column: KeyColumn, codes: Uint32Array): void {
    const values = (column as KeyColumn & { type: 'int32' }).values;
    const { table, mask } = this.#slots;
    const keys = this.#keys;
    for (let i = 0; i < values.length; i++) {
      const key = values[i];
      let slot = spread(key) & mask;
      let entry = table[slot];
      while (entry !== 0 && keys[entry - 1] !== key) {
        slot = (slot + 1) & mask;
        entry = table[slot];
      }
      codes[i] = entry === 0 ? UNKNOWN_KEY : entry - 1;
    }
  }

  keys(): KeyColumn {
    return { type: 'int32', values: this.#keys.subarray(0, this.size) };
  }

  ascending(): Uint32Array {
    const sorted = this.#keys.slice(0, this.size).sort();
    const order = new Uint32Array(this.size);
    this.find({ type: 'int32', values: sorted }, order);
    return order;
  }

  #rehash(): void {
    this.#slots.reset(this.size);
    const { table, mask } = this.#slots;
    for (let code = 0; code < this.size; code++) {
      let slot = spread(this.#keys[code]) & mask;
      while (table[slot] !== 0) slot = (slot + 1) & mask;
      table[slot] = code + 1;
    }
  }
}
