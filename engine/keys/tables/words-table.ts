import { UNKNOWN_KEY } from './key-table.ts';
import { Slots, spread } from './slots.ts';

/** Numbers sequences of 32-bit words, all of one length, in the order in which they are first added. */
export class WordsTable {
  readonly #width: number;
  size = 0;
  /** Word w of sequence c at c * width + w. */
  #keys: Int32Array;
  readonly #slots = new Slots();

  constructor(width: number) {
    this.#width = width;
    this.#keys = new Int32Array(64 * width);
  }

  /** Writes the number of each of `codes.length` sequences, adding those that are new. */
  add(words: Int32Array, codes: Uint32Array): void {
    const width = this.#width;
    for (let i = 0; i < codes.length; i++) {
      const slot = this.#slotOf(words, i * width);
      const entry = this.#slots.table[slot];
      codes[i] = entry === 0 ? this.#insert(slot, words, i * width) : entry - 1;
    }
  }

  /** Writes the number of each sequence, or UNKNOWN_KEY. */
  find(words: Int32Array, codes: Uint32Array): void {
    const width = this.#width;
    for (let i = 0; i < codes.length; i++) {
      const entry = this.#slots.table[this.#slotOf(words, i * width)];
      codes[i] = entry === 0 ? UNKNOWN_KEY : entry - 1;
    }
  }

  /** The slot that holds the sequence at a position, or the empty one where it belongs. */
  #slotOf(words: Int32Array, at: number): number {
    const { table, mask } = this.#slots;
    const [keys, width] = [this.#keys, this.#width];
    let slot = hashWords(words, at, width) & mask;
    for (let entry = table[slot]; entry !== 0; entry = table[slot]) {
      const own = (entry - 1) * width;
      let same = 0;
      while (same < width && keys[own + same] === words[at + same]) same++;
      if (same === width) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #insert(slot: number, words: Int32Array, at: number): number {
    const [code, width] = [this.size++, this.#width];
    if (code * width === this.#keys.length) {
      const grown = new Int32Array(2 * this.#keys.length);
      grown.set(this.#keys);
      this.#keys = grown;
    }
    for (let w = 0; w < width; w++) this.#keys[code * width + w] = words[at + w];
    this.#slots.table[slot] = code + 1;
    if (this.#slots.isFull(this.size)) {
      this.#slots.reset(this.size);
      for (let c = 0; c < this.size; c++) this.#slots.table[this.#slotOf(this.#keys, c * width)] = c + 1;
    }
    return code;
  }
}

function hashWords(words: Int32Array, at: number, width: number): number {
  let hash = words[at];
  for (let w = 1; w < width; w++) hash = (Math.imul(hash, 0x9e37_79b1) ^ (hash >>> 15)) + words[at + w];
  return spread(hash);
}
