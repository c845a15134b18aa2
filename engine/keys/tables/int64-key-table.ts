import type { KeyColumn } from '../key-column.ts';
import { type KeyTable, UNKNOWN_KEY } from './key-table.ts';
import { Slots, spread } from './slots.ts';

export class Int64KeyTable implements KeyTable {
  readonly type = 'int64';
  size = 0;
  /** (low, high) of key c at 2c, 2c + 1. */
  #halves = new Int32Array(128);
  readonly #slots = new Slots();

  add(column: KeyColumn, codes: Uint32Array): void {
    const input = (column as KeyColumn & { type: 'int64' }).halves;
    const count = input.length / 2;
    for (let i = 0; i < count; i++) {
      const low = input[2 * i];
      const high = input[2 * i + 1];
      const slot = this.#slotOf(low, high);
      const entry = this.#slots.table[slot];
      codes[i] = entry === 0 ? this.#insert(slot, low, high) : entry - 1;
    }
  }

  find(column: KeyColumn, codes: Uint32Array): void {
    const input = (column as KeyColumn & { type: 'int64' }).halves;
    const count = input.length / 2;
    for (let i = 0; i < count; i++) {
      const entry = this.#slots.table[this.#slotOf(input[2 * i], input[2 * i + 1])];
      codes[i] = entry === 0 ? UNKNOWN_KEY : entry - 1;
    }
  }

  keys(): KeyColumn {
    return { type: 'int64', halves: this.#halves.subarray(0, 2 * this.size) };
  }

  ascending(): Uint32Array {
    // One sort of whole 64-bit integers; no BigInt is made for a row.
    const copy = this.#halves.slice(0, 2 * this.size);
    new BigInt64Array(copy.buffer, 0, this.size).sort();
    const order = new Uint32Array(this.size);
    this.find({ type: 'int64', halves: copy }, order);
    return order;
  }

  /** The slot that holds the key, or the empty one where it belongs. */
  #slotOf(low: number, high: number): number {
    const { table, mask } = this.#slots;
    const halves = this.#halves;
    let slot = hashHalves(low, high) & mask;
    for (let entry = table[slot]; entry !== 0; entry = table[slot]) {
      if (halves[2 * entry - 2] === low && halves[2 * entry - 1] === high) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #insert(slot: number, low: number, high: number): number {
    const code = this.size++;
    if (2 * code === this.#halves.length) {
      const grown = new Int32Array(2 * this.#halves.length);
      grown.set(this.#halves);
      this.#halves = grown;
    }
    this.#halves[2 * code] = low;
    this.#halves[2 * code + 1] = high;
    this.#slots.table[slot] = code + 1;
    if (this.#slots.isFull(this.size)) {
      this.#slots.reset(this.size);
      for (let c = 0; c < this.size; c++) {
        this.#slots.table[this.#slotOf(this.#halves[2 * c], this.#halves[2 * c + 1])] = c + 1;
      }
    }
    return code;
  }
}

/** A 32-bit hash of an int64. */
export function hashHalves(low: number, high: number): number {
  return spread(low ^ Math.imul(high, 0x9e37_79b1));
}
