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
