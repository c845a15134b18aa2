import { compareRows, type KeyWords } from './sort-keys.ts';

const DIGIT_BITS = 11;

/** Rows and the word they are being sorted by, moved together so that passes read in order. */
interface Moved {
  words: Uint32Array;
  rows: Uint32Array;
}

/** The stable order of rows by their keys: positions of rows, from the first. */
export function sortRows(keys: KeyWords): Uint32Array {
  const { words, bits } = packWords(keys);
  let from: Moved = { words: new Uint32Array(keys.rows), rows: new Uint32Array(keys.rows) };
  for (let row = 0; row < keys.rows; row++) from.rows[row] = row;
  let to: Moved = { words: new Uint32Array(keys.rows), rows: new Uint32Array(keys.rows) };
  for (let word = words.length - 1; word >= 0; word--) {
    const source = words[word];
    for (let i = 0; i < keys.rows; i++) from.words[i] = source[from.rows[i]];
    const passes = Math.ceil(bits[word] / DIGIT_BITS);
    const width = Math.ceil(bits[word] / passes);
    for (let pass = 0; pass < passes; pass++) {
      scatter(from, to, pass * width, width);
      [from, to] = [to, from];
    }
  }
  if (keys.texts.length > 0) sortTies(keys, from.rows);
  return from.rows;
}

/** Joins the bits in which rows differ to as few words as possible, since each pass costs the same. */
function packWords({ words, rows }: KeyWords): { words: Uint32Array[]; bits: number[] } {
  const packed: Uint32Array[] = [];
  const bits: number[] = [];
  for (let word = words.length - 1; word >= 0; word--) {
    const count = differingBits(words[word]);
    if (count === 0) continue;
    const used = bits[0] ?? 32;
    const fits = Math.min(32 - used, count);
    if (fits > 0) {
      addBits(packed[0], words[word], used);
      bits[0] += fits;
    }
    if (fits === count) {
      if (bits[0] < 32) maskTop(packed[0], bits[0]);
      continue;
    }
    const top = new Uint32Array(rows);
    const mask = 2 ** (count - fits) - 1;
    for (let row = 0; row < rows; row++) top[row] = (words[word][row] >>> fits) & mask;
    packed.unshift(top);
    bits.unshift(count - fits);
  }
  return { words: packed, bits };
}

function addBits(to: Uint32Array, from: Uint32Array, shift: number): void {
  for (let row = 0; row < to.length; row++) to[row] |= from[row] << shift;
}

function maskTop(words: Uint32Array, bits: number): void {
  const mask = 2 ** bits - 1;
  for (let row = 0; row < words.length; row++) words[row] &= mask;
}

/** Bits from the lowest to the highest in which any two values differ. */
function differingBits(values: Uint32Array): number {
  const first = values[0];
  let different = 0;
  for (let row = 0; row < values.length; row++) different |= values[row] ^ first;
  return 32 - Math.clz32(different);
}

/** One stable pass by the digit of `width` bits from `shift`. */
function scatter(from: Moved, to: Moved, shift: number, width: number): void {
  const { words, rows } = from;
  const { words: toWords, rows: toRows } = to;
  const mask = (1 << width) - 1;
  const next = new Uint32Array(1 << width);
  for (let i = 0; i < words.length; i++) next[(words[i] >>> shift) & mask]++;
  for (let digit = 0, start = 0; digit < next.length; digit++) {
    const count = next[digit];
    next[digit] = start;
    start += count;
  }
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    const at = next[(word >>> shift) & mask]++;
    toWords[at] = word;
    toRows[at] = rows[i];
  }
}

/** Sorts rows whose order depends on bytes after a text's prefix. */
function sortTies(keys: KeyWords, order: Uint32Array): void {
  const compare = (a: number, b: number) => compareRows(keys, a, keys, b) || a - b;
  for (let start = 0, end = 1; end <= order.length; end++) {
    if (end < order.length && isTie(keys, order[end - 1], order[end])) continue;
    if (end - start > 1) order.subarray(start, end).sort(compare);
    start = end;
  }
}

/** True if words up to the end of a long text are equal. */
function isTie({ words, texts }: KeyWords, a: number, b: number): boolean {
  let word = 0;
  for (const { end, long } of texts) {
    for (; word < end; word++) if (words[word][a] !== words[word][b]) return false;
    if (words[end - 1][a] === long) return true;
  }
  return false;
}
