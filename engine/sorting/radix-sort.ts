import type { KeyWords } from './sort-keys.ts';

/**
 * Sort keys in few words: rows have the order of their words. Of a long text only the first bytes are
 * included, so rows with equal words may still differ.
 */
export interface PackedWords {
  /** Most significant word first. */
  readonly words: readonly Uint32Array[];
  /** Low bits of the last word that are unused. */
  readonly unused: number;
}

/**
 * Keeps only the bits in which rows differ, and packs them into the fewest words, because each pass over a
 * word costs the same.
 */
export function packWords({ words, rows }: KeyWords): PackedWords {
  const packed: Uint32Array[] = [];
  let room = 0;
  for (const word of words) {
    if (typeof word === 'number') continue;
    const { least, low, bits } = rangeOf(word);
    if (bits === 0) continue;
    if (room > 0) addBits(packed[packed.length - 1], word, { least, low, up: room - bits });
    if (bits <= room) {
      room -= bits;
      continue;
    }
    room += 32 - bits;
    packed.push(new Uint32Array(rows));
    addBits(packed[packed.length - 1], word, { least, low, up: room });
  }
  return { words: packed, unused: room };
}

/** The smallest value, and the bits in which values differ from it: `bits` bits from bit `low` up. */
function rangeOf(values: Uint32Array): { least: number; low: number; bits: number } {
  const first = values[0];
  let [least, most, different] = [first, first, 0];
  for (let row = 0; row < values.length; row++) {
    const value = values[row];
    if (value < least) least = value;
    if (value > most) most = value;
    different |= value ^ first;
  }
  if (different === 0) return { least, low: 0, bits: 0 };
  const low = 31 - Math.clz32(different & -different);
  return { least, low, bits: 32 - Math.clz32(most - least) - low };
}

/**
 * Adds each value's difference from the smallest one, shifted left by `up` bits (right if negative). Bits
 * outside the word are dropped.
 */
function addBits(
  to: Uint32Array,
  from: Uint32Array,
  { least, low, up }: { readonly least: number; readonly low: number; readonly up: number },
): void {
  if (up >= 0) for (let row = 0; row < to.length; row++) to[row] |= ((from[row] - least) >>> low) << up;
  else for (let row = 0; row < to.length; row++) to[row] |= ((from[row] - least) >>> low) >>> -up;
}

/** Most rows that are sorted by insertion. */
const FEW_ROWS = 24;
const MOST_DIGIT_BITS = 11;

/** A range of positions in `order` whose rows are equal in all words before `word`. */
interface Range {
  readonly start: number;
  readonly end: number;
  readonly word: number;
}

/**
 * Sorts by the highest bits in which rows differ, enough of them to separate most rows. Each run of rows
 * that are still equal is then sorted by the next bits. So rows that differ early need no passes over their
 * other words.
 */
export class RadixSort {
  readonly #packed: PackedWords;
  readonly #order: Uint32Array;
  /** The current sort word of each row in `order`. */
  readonly #values: Uint32Array;
  readonly #movedOrder: Uint32Array;
  readonly #movedValues: Uint32Array;
  readonly #next = new Uint32Array(2 ** MOST_DIGIT_BITS);

  /** `mostRows`: most rows of a range to be sorted. */
  constructor(packed: PackedWords, order: Uint32Array, mostRows: number) {
    this.#packed = packed;
    this.#order = order;
    this.#values = new Uint32Array(mostRows);
    this.#movedOrder = new Uint32Array(mostRows);
    this.#movedValues = new Uint32Array(mostRows);
  }

  /** Sorts order[start, end); stable. */
  sort(start: number, end: number): void {
    const order = this.#order.subarray(start, end);
    this.#sort(order, { start: 0, end: end - start, word: 0 });
  }

  #sort(order: Uint32Array, { start, end, word }: Range): void {
    const { words } = this.#packed;
    if (end - start <= FEW_ROWS) return insert(words, order, { start, end, word });
    const [values, source] = [this.#values, words[word]];
    const first = source[order[start]];
    let different = 0;
    for (let i = start; i < end; i++) {
      const value = source[order[i]];
      values[i] = value;
      different |= value ^ first;
    }
    const isLast = word === words.length - 1;
    if (different === 0) {
      if (!isLast) this.#sort(order, { start, end, word: word + 1 });
      return;
    }
    const high = 32 - Math.clz32(different);
    const bits = isLast ? high - this.#packed.unused : high;
    const width = Math.min(digitBits(end - start), (bits + 1) >> 1);
    const shift = Math.max(high - 2 * width, 0);
    this.#scatter(
      { values, order },
      { values: this.#movedValues, order: this.#movedOrder },
      { start, end, shift, width },
    );
    this.#scatter(
      { values: this.#movedValues, order: this.#movedOrder },
      { values, order },
      { start, end, shift: shift + width, width },
    );
    if (!isLast || 2 * width < bits) this.#sortRuns(order, { start, end, word }, shift);
  }

  /** Sorts the runs of rows that are equal in the bits from `shift` up, by the next bits. */
  #sortRuns(order: Uint32Array, { start, end, word }: Range, shift: number): void {
    const values = this.#values;
    const next = shift === 0 ? word + 1 : word;
    for (let from = start, to = start + 1; to <= end; to++) {
      if (to < end && (values[to] ^ values[from]) >>> shift === 0) continue;
      if (to - from > 1) this.#sort(order, { start: from, end: to, word: next });
      from = to;
    }
  }

  /** One stable counting pass by the digit of `width` bits from `shift`. */
  #scatter(
    from: { readonly values: Uint32Array; readonly order: Uint32Array },
    to: { readonly values: Uint32Array; readonly order: Uint32Array },
    { start, end, shift, width }: { start: number; end: number; shift: number; width: number },
  ): void {
    const { values, order } = from;
    const { values: toValues, order: toOrder } = to;
    const mask = 2 ** width - 1;
    const next = this.#next.fill(0, 0, mask + 1);
    for (let i = start; i < end; i++) next[(values[i] >>> shift) & mask]++;
    for (let digit = 0, at = start; digit <= mask; digit++) {
      const count = next[digit];
      next[digit] = at;
      at += count;
    }
    for (let i = start; i < end; i++) {
      const value = values[i];
      const at = next[(value >>> shift) & mask]++;
      toValues[at] = value;
      toOrder[at] = order[i];
    }
  }
}

/**
 * Number of bits sorted in one pass: few enough that counting the digit's values costs less than moving the
 * rows.
 */
function digitBits(rows: number): number {
  return Math.min(MOST_DIGIT_BITS, Math.max(4, 27 - Math.clz32(rows)));
}

/** Insertion sort, for few rows. */
function insert(words: readonly Uint32Array[], order: Uint32Array, { start, end, word }: Range): void {
  const source = words[word];
  for (let i = start + 1; i < end; i++) {
    const row = order[i];
    const value = source[row];
    let at = i;
    for (; at > start; at--) {
      const before = order[at - 1];
      const other = source[before];
      if (other < value || (other === value && compareWords(words, word + 1, before, row) <= 0)) break;
      order[at] = before;
    }
    order[at] = row;
  }
}

export function compareWords(words: readonly Uint32Array[], word: number, a: number, b: number): number {
  for (let at = word; at < words.length; at++) {
    const difference = words[at][a] - words[at][b];
    if (difference !== 0) return difference;
  }
  return 0;
}
