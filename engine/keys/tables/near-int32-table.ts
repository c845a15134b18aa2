import { UNKNOWN_KEY } from './key-table.ts';
import { WordsTable } from './words-table.ts';

/** Smallest and largest range of the direct table. */
const LEAST_RANGE = 1 << 12;
const LARGEST_RANGE = 1 << 24;

/**
 * Assigns numbers to int32 keys in the order in which they are first added. It indexes an array by key as
 * long as the keys' range is small compared with the number of rows; after that it uses a hash table.
 */
export class NearInt32Table {
  /** At i, the number + 1 of the key `least + i`; 0 if there is no such key. */
  #entries = new Int32Array(0);
  #least = 0;
  #size = 0;
  #rows = 0;
  /** Replaces the direct table once keys are too far apart. */
  #hashed: WordsTable | undefined;
  readonly #largestRange: number;

  constructor(largestRange = LARGEST_RANGE) {
    this.#largestRange = largestRange;
  }

  get size(): number {
    return this.#hashed?.size ?? this.#size;
  }

  /** Writes the number of each key; new keys are added. */
  add(values: Int32Array, codes: Uint32Array): void {
    this.#rows += values.length;
    let done = 0;
    while (done < values.length && this.#hashed === undefined) {
      done = this.#addWithin(values, codes, done);
      if (done < values.length) this.#include(values.subarray(done, done + LEAST_RANGE));
    }
    if (done < values.length) this.#hashed?.add(values.subarray(done), codes.subarray(done));
  }

  /** Adds keys from position `from` up to the first key outside the range; returns its position. */
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

  /** The keys by number. */
  words(): Int32Array {
    if (this.#hashed !== undefined) return this.#hashed.words();
    const values = new Int32Array(this.#size);
    this.#entries.forEach((entry, at) => {
      if (entry > 0) values[entry - 1] = this.#least + at;
    });
    return values;
  }

  /** Extends the range to include the values, or switches to hashing. */
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
    // Doubles the range in the direction in which it grew, so that ascending keys rarely extend it again.
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
