import { UNKNOWN_KEY } from './key-table.ts';
import { WordsTable } from './words-table.ts';

/** Values of the range of a table, at least and at most. */
const LEAST_RANGE = 1 << 12;
const LARGEST_RANGE = 1 << 24;

/**
 * Numbers int32 keys in the order in which they are first added: by a plain table of their range as long as
 * that is small for the number of rows, else by hashing.
 */
export class NearInt32Table {
  /** The number + 1 of the key `least + i` at i; 0 for none. */
  #entries = new Int32Array(0);
  #least = 0;
  #size = 0;
  #rows = 0;
  /** In place of the plain table once keys are far apart. */
  #hashed: WordsTable | undefined;
  readonly #largestRange: number;

  constructor(largestRange = LARGEST_RANGE) {
    this.#largestRange = largestRange;
  }

  get size(): number {
    return this.#hashed?.size ?? this.#size;
  }

  /** Writes the number of each key, adding those that are new. */
  add(values: Int32Array, codes: Uint32Array): void {
    this.#rows += values.length;
    let done = 0;
    while (done < values.length && this.#hashed === undefined) {
      done = this.#addWithin(values, codes, done);
      if (done < values.length) this.#include(values.subarray(done, done + LEAST_RANGE));
    }
    if (done < values.length) this.#hashed?.add(values.subarray(done), codes.subarray(done));
  }

  /** Adds keys from `from` on up to the first one outside of the range; gives its position. */
  #addWithin(values: Int32Array, codes: Uint32Array, from: number): number {
    const [entries, least] = [this.#entries, this.#least];
    const range = entries.length;
    let size = this.#size;
    let i = from;
    for (; i < values.length; i++) {
      const at = values[i] - least;
      if (at < 0 || at >= range) break;
      let entry = entries[at];
      if (entry === 0) {
        entry = ++size;
        entries[at] = entry;
      }
      codes[i] = entry - 1;
    }
    this.#size = size;
    return i;
  }

  /** Writes the number of each key, or UNKNOWN_KEY. */
  find(values: Int32Array, codes: Uint32Array): void {
    if (this.#hashed !== undefined) {
      this.#hashed.find(values, codes);
      return;
    }
    const [entries, least] = [this.#entries, this.#least];
    const range = entries.length;
    for (let i = 0; i < values.length; i++) {
      const at = values[i] - least;
      const entry = at >= 0 && at < range ? entries[at] : 0;
      codes[i] = entry === 0 ? UNKNOWN_KEY : entry - 1;
    }
  }

  /** The keys by their numbers. */
  words(): Int32Array {
    if (this.#hashed !== undefined) return this.#hashed.words();
    const values = new Int32Array(this.#size);
    this.#entries.forEach((entry, at) => {
      if (entry > 0) values[entry - 1] = this.#least + at;
    });
    return values;
  }

  /** Makes room for the values' range, or hashes the keys from now on. */
  #include(values: Int32Array): void {
    let [least, most] = [values[0], values[0]];
    for (let i = 1; i < values.length; i++) {
      const value = values[i];
      if (value < least) least = value;
      else if (value > most) most = value;
    }
    const [from, range] = [this.#least, this.#entries.length];
    if (range > 0) {
      if (least >= from && most < from + range) return;
      [least, most] = [Math.min(least, from), Math.max(most, from + range - 1)];
    }
    const limit = Math.min(this.#largestRange, LEAST_RANGE + 8 * this.#rows);
    if (most - least >= limit) {
      this.#hash();
      return;
    }
    // Room for as many again in the direction in which the range grows: ascending keys seldom grow it.
    const needed = Math.max(most - least + 1, LEAST_RANGE);
    const spare = Math.min(range, limit - needed);
    if (least < from && range > 0) least -= spare;
    const entries = new Int32Array(needed + spare);
    if (range > 0) entries.set(this.#entries, from - least);
    [this.#entries, this.#least] = [entries, least];
  }

  #hash(): void {
    const hashed = new WordsTable(1);
    hashed.add(this.words(), new Uint32Array(this.#size));
    this.#hashed = hashed;
    this.#entries = new Int32Array(0);
  }
}
