import { type KeyWord, type KeyWords, wordAt } from './sort-keys.ts';

/** Bits of an integer that a double holds exactly. */
const DOUBLE_BITS = 53;
const CELLS = 1 << 11;

/** One word's share of the number that encodes the leading words of a row. */
interface LeadingWord {
  readonly word: number;
  /** Smallest and largest value among the bounds. */
  readonly least: number;
  readonly most: number;
  /** Low bits that are dropped from the last word. */
  readonly shift: number;
  /**
   * The number of distinct values of the word, including one value for all words below the smallest and one
   * for all words above the largest.
   */
  readonly values: number;
}

export interface PartsByWords {
  readonly parts: Uint16Array;
  readonly undecided: Uint32Array;
  readonly ends: Uint16Array;
  readonly nextWord: number;
}

/**
 * Assigns rows to parts, the ranges between sorted bounds, by comparing one number for each row. The number
 * encodes the leading words that fit in a double, each limited to the range of the bounds' words. If the
 * numbers of a row and a bound differ, they have the order of the words. If they are equal, further words
 * must be compared.
 */
export class LeadingWords {
  readonly #keys: KeyWords;
  readonly #leading: readonly LeadingWord[];
  readonly #nextWord: number;
  readonly #bounds: Float64Array;

  constructor(keys: KeyWords, bounds: KeyWords) {
    this.#keys = keys;
    const { leading, next } = leadingWords(keys, bounds);
    this.#leading = leading;
    this.#nextWord = next;
    this.#bounds = leads(bounds, this.#leading);
  }

  /**
   * Compares the numbers of all rows with the numbers of the bounds.
   *
   * - `parts`: for each row, the number of bounds below it.
   * - `undecided`: rows whose number equals a bound's number, so that words from `nextWord` on must be
   *   compared. Such a row equals the bounds from parts[row] to ends[parts[row]] - 1 in all words before
   *   `nextWord`.
   */
  parts(): PartsByWords {
    const [bounds, rows] = [this.#bounds, leads(this.#keys, this.#leading)];
    const [least, most] = [bounds[0], bounds[bounds.length - 1]];
    const scale = most > least ? (CELLS - 1) / (most - least) : 0;
    const starts = cellStarts(bounds, least, scale);
    const parts = new Uint16Array(rows.length);
    const undecided = new Uint32Array(rows.length);
    let count = 0;
    for (let row = 0; row < rows.length; row++) {
      const lead = rows[row];
      if (lead > most) parts[row] = bounds.length;
      if (lead < least || lead > most) continue;
      const cell = ((lead - least) * scale) | 0;
      let bound = starts[cell];
      for (let end = starts[cell + 1]; bound < end;) {
        const middle = (bound + end) >> 1;
        if (bounds[middle] < lead) bound = middle + 1;
        else end = middle;
      }
      parts[row] = bound;
      if (bounds[bound] === lead) undecided[count++] = row;
    }
    const ends = Uint16Array.from(bounds, (_, bound) => bound + 1);
    for (let bound = ends.length - 2; bound >= 0; bound--)
      if (bounds[bound] === bounds[bound + 1]) ends[bound] = ends[bound + 1];
    return { parts, undecided: undecided.subarray(0, count), ends, nextWord: this.#nextWord };
  }
}

/** The first bound of each cell of the bounds' range. */
function cellStarts(bounds: Float64Array, least: number, scale: number): Uint16Array {
  const starts = new Uint16Array(CELLS + 1);
  for (const bound of bounds) starts[(((bound - least) * scale) | 0) + 1]++;
  for (let cell = 0; cell < CELLS; cell++) starts[cell + 1] += starts[cell];
  return starts;
}

/** The leading words that fit, and the first word that is not included completely. */
function leadingWords(
  { words, texts }: KeyWords,
  bounds: KeyWords,
): { leading: LeadingWord[]; next: number } {
  const leading: LeadingWord[] = [];
  let room = 2 ** DOUBLE_BITS;
  // A text's last word is not included: bytes of the text that are not in its words are compared before the
  // words of the next key.
  const end = texts.length === 0 ? words.length : texts[0].end - 1;
  for (let word = 0; word < end; word++) {
    const [least, most] = rangeOf(bounds.words[word], bounds.rows);
    // The word is the same in all rows and bounds, so it decides nothing.
    if (least === most && words[word] === least) continue;
    const isWhole = most - least + 3 <= room;
    const shift = isWhole ? 0 : Math.ceil(Math.log2((most - least + 3) / room)) + 1;
    const values = Math.floor((most - least) / 2 ** shift) + 3;
    // In JavaScript a shift by 32 bits does nothing.
    if (values <= room && shift < 32) leading.push({ word, least, most, shift, values });
    if (!isWhole) return { leading, next: word };
    room = Math.floor(room / values);
  }
  return { leading, next: end };
}

function rangeOf(word: KeyWord, rows: number): [least: number, most: number] {
  let [least, most] = [Infinity, -Infinity];
  for (let row = 0; row < rows; row++) {
    const value = wordAt(word, row);
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}

function leads({ words, rows }: KeyWords, leading: readonly LeadingWord[]): Float64Array {
  const numbers = new Float64Array(rows);
  for (const [i, part] of leading.entries()) {
    const word = words[part.word];
    if (typeof word === 'number') addConstant(numbers, word, part);
    else if (i === 0) beginWith(numbers, word, part);
    else addWord(numbers, word, part);
  }
  return numbers;
}

function beginWith(numbers: Float64Array, word: Uint32Array, { least, most, shift }: LeadingWord): void {
  const above = ((most - least) >>> shift) + 2;
  for (let row = 0; row < numbers.length; row++) {
    const value = word[row];
    numbers[row] = value < least ? 0 : value > most ? above : ((value - least) >>> shift) + 1;
  }
}

function addWord(
  numbers: Float64Array,
  word: Uint32Array,
  { least, most, shift, values }: LeadingWord,
): void {
  const above = ((most - least) >>> shift) + 2;
  for (let row = 0; row < numbers.length; row++) {
    const value = word[row];
    const own = value < least ? 0 : value > most ? above : ((value - least) >>> shift) + 1;
    numbers[row] = numbers[row] * values + own;
  }
}

function addConstant(
  numbers: Float64Array,
  value: number,
  { least, most, shift, values }: LeadingWord,
): void {
  const above = ((most - least) >>> shift) + 2;
  const own = value < least ? 0 : value > most ? above : ((value - least) >>> shift) + 1;
  for (let row = 0; row < numbers.length; row++) numbers[row] = numbers[row] * values + own;
}
