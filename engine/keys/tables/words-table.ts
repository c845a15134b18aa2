import { spread } from '../../random.ts';
import { UNKNOWN_KEY } from '../key-column.ts';

/**
 * Number of sequences that are processed together: the slots of all of them are read before any is searched,
 * so that the memory accesses overlap.
 */
const BLOCK = 256;
/** Below this number of slots a full table grows by a factor of four. */
const FEW_SLOTS = 1 << 20;

/** From this number of sequences on, a table of mostly new sequences gets room for all expected ones at once. */
const SAMPLED = 1 << 11;
/** Most sequences for which a table makes room ahead. */
const MOST_EXPECTED = 1 << 20;

/** Most slots of a table that fits in the cache. */
const CACHED_SLOTS = 1 << 17;

const hashes = new Int32Array(BLOCK);

/** Receives values that are read in advance. Without a use, the compiler would remove these reads. */
const ahead = new Int32Array(1);

/**
 * Memory of released tables, for the next tables of this thread: the system clears new memory page by page,
 * which takes as long as filling a table.
 */
const free: Words[] = [];
type Words = Int32Array<ArrayBuffer>;
/** Limits of the free arrays: their number, and the fewest and most words in each. */
const MOST_FREE = 4;
const LEAST_WORDS = 1 << 14;
const MOST_WORDS = 1 << 21;

/** At least `length` words, whose contents are undefined. */
function takeArray(length: number): Words {
  const at = free.findIndex((array) => array.length >= length && array.length <= 4 * length);
  return at < 0 ? new Int32Array(length) : free.splice(at, 1)[0];
}

function giveArray(array: Words): void {
  if (array.length < LEAST_WORDS || array.length > MOST_WORDS) return;
  if (free.length === MOST_FREE) free.shift();
  free.push(array);
}

/**
 * Assigns the numbers 0, 1, 2, ... to sequences of 32-bit words, all of one length, in the order in which
 * they are first added.
 *
 * A hash table with open addressing. A slot is one word: 0 if it is empty, else the number + 1 of a sequence
 * in the low bits, which are as many as address all slots, and in the bits above them those of the hash:
 *
 *     2^20 slots      hash bits 31..20 | number + 1
 *
 * The hash's low bits choose the slot. So in nearly all cases a new sequence is recognized without reading
 * stored sequences, and a known one is compared only with its equal. At most half of the slots are used.
 */
export class WordsTable {
  readonly #width: number;
  readonly #expected: number;
  /** Number of sequences that were given, with repeated ones. */
  #given = 0;
  /** A power of two. */
  #slots = new Int32Array(128);
  /** Word w of sequence c at c * width + w. */
  #keys: Words;
  size = 0;

  /** `expected`: the number of sequences that will be added, with repeated ones, if it is known. */
  constructor(width: number, expected = 0) {
    this.#width = width;
    this.#expected = Math.min(expected, MOST_EXPECTED);
    this.#keys = new Int32Array(64 * width);
  }

  /** Writes the number of each of `codes.length` sequences; new ones are added. */
  add(words: Int32Array, codes: Uint32Array): void {
    for (let from = 0; from < codes.length; from += BLOCK) {
      const to = Math.min(from + BLOCK, codes.length);
      this.#reserve(this.size + to - from);
      this.#given += to - from;
      this.#hash(words, from, to);
      this.#addBlock(words, codes, from, to);
    }
  }

  /** Writes the number of each sequence, or UNKNOWN_KEY. */
  find(words: Int32Array, codes: Uint32Array): void {
    for (let from = 0; from < codes.length; from += BLOCK) {
      const to = Math.min(from + BLOCK, codes.length);
      this.#hash(words, from, to);
      this.#findBlock(words, codes, from, to);
    }
  }

  /** The words of all sequences, by number. */
  words(): Int32Array {
    return this.#keys.subarray(0, this.size * this.#width);
  }

  /** Ends the table, whose memory the next table takes. */
  giveBack(): void {
    giveArray(this.#slots);
    giveArray(this.#keys);
    [this.#slots, this.#keys, this.size] = [new Int32Array(128), new Int32Array(64 * this.#width), 0];
  }

  #hash(words: Int32Array, from: number, to: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    const width = this.#width;
    let read = 0;
    for (let i = from; i < to; i++) {
      const hash = hashOf(words, i * width, width);
      hashes[i - from] = hash;
      read ^= slots[hash & mask];
    }
    ahead[0] = read;
    if (slots.length > CACHED_SLOTS) this.#readAhead(to - from);
  }

  /** Reads the stored sequences that the block's sequences probably equal. */
  #readAhead(rows: number): void {
    const slots = this.#slots;
    const keys = this.#keys;
    const width = this.#width;
    const mask = slots.length - 1;
    let read = 0;
    for (let i = 0; i < rows; i++) {
      const entry = slots[hashes[i] & mask];
      if (((entry ^ hashes[i]) & ~mask) === 0 && entry !== 0) read ^= keys[((entry & mask) - 1) * width];
    }
    ahead[0] ^= read;
  }

  #addBlock(words: Int32Array, codes: Uint32Array, from: number, to: number): void {
    const slots = this.#slots;
    const keys = this.#keys;
    const width = this.#width;
    const mask = slots.length - 1;
    let size = this.size;
    for (let i = from, at = from * width; i < to; i++, at += width) {
      const hash = hashes[i - from];
      let slot = hash & mask;
      let code = -1;
      for (let entry = slots[slot]; entry !== 0; entry = slots[slot]) {
        const found = (entry & mask) - 1;
        if (((entry ^ hash) & ~mask) === 0 && isSame(keys, found * width, words, at, width)) {
          code = found;
          break;
        }
        slot = (slot + 1) & mask;
      }
      if (code < 0) {
        code = size++;
        slots[slot] = (hash & ~mask) | size;
        for (let w = 0; w < width; w++) keys[code * width + w] = words[at + w];
      }
      codes[i] = code;
    }
    this.size = size;
  }

  #findBlock(words: Int32Array, codes: Uint32Array, from: number, to: number): void {
    const slots = this.#slots;
    const keys = this.#keys;
    const width = this.#width;
    const mask = slots.length - 1;
    for (let i = from, at = from * width; i < to; i++, at += width) {
      const hash = hashes[i - from];
      let slot = hash & mask;
      let code = UNKNOWN_KEY;
      for (let entry = slots[slot]; entry !== 0; entry = slots[slot]) {
        const found = (entry & mask) - 1;
        if (((entry ^ hash) & ~mask) === 0 && isSame(keys, found * width, words, at, width)) {
          code = found;
          break;
        }
        slot = (slot + 1) & mask;
      }
      codes[i] = code;
    }
  }

  /** Makes room for a number of sequences. */
  #reserve(least: number): void {
    const width = this.#width;
    const isMostlyNew = this.size > SAMPLED && 2 * this.size > this.#given;
    const size = isMostlyNew ? Math.max(least, this.#expected) : least;
    if (size * width > this.#keys.length) {
      const grown = takeArray(Math.max(size * width, 2 * this.#keys.length));
      grown.set(this.words());
      // The old keys are not given to another table: the caller may have a view of them.
      this.#keys = grown;
    }
    let length = this.#slots.length;
    while (2 * size > length) length *= length < FEW_SLOTS && !isMostlyNew ? 4 : 2;
    if (length > this.#slots.length) this.#enlarge(length);
  }

  #enlarge(length: number): void {
    const width = this.#width;
    const slots = takeArray(length).subarray(0, length).fill(0);
    const mask = length - 1;
    for (let code = 0; code < this.size; code++) {
      const hash = hashOf(this.#keys, code * width, width);
      let slot = hash & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = (hash & ~mask) | (code + 1);
    }
    giveArray(this.#slots);
    this.#slots = slots;
  }
}

function isSame(keys: Int32Array, own: number, words: Int32Array, at: number, width: number): boolean {
  if (keys[own] !== words[at]) return false;
  if (width === 2) return keys[own + 1] === words[at + 1];
  for (let w = 1; w < width; w++) if (keys[own + w] !== words[at + w]) return false;
  return true;
}

/** A hash of two words, such as the halves of an int64. */
export function hashHalves(low: number, high: number): number {
  return spread(low ^ Math.imul(high, 0x9e37_79b1));
}

function hashOf(words: Int32Array, at: number, width: number): number {
  if (width === 2) return hashHalves(words[at], words[at + 1]);
  let hash = words[at];
  for (let w = 1; w < width; w++) hash = (Math.imul(hash, 0x9e37_79b1) ^ (hash >>> 15)) + words[at + w];
  return spread(hash);
}

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
