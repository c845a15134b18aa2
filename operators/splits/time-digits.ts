/**
 * Splits a float64 into three digits with the same order as the numbers. A radix selection then finds the
 * number of any rank exactly, by counting one digit in each pass over the data. Before that, bits are flipped
 * so that the words have the order of the numbers: all 64 bits of a negative number, and only the sign bit of
 * others:
 *
 *     high word                            low word
 *     [ 22 bits: digit 0 ][ 10 bits         11 bits ][ 21 bits: digit 2 ]
 *                         [    digit 1, 21 bits     ]
 */
export const LEVELS = 3;

/** Number of values of a level's digit. */
export function digitCount(level: number): number {
  return level === 0 ? 2 ** 22 : 2 ** 21;
}

/** The words (low, high) of each number after the bits were flipped, in pairs. */
export function orderedWords(numbers: Float64Array): Uint32Array {
  const words = new Uint32Array(numbers.slice().buffer);
  for (let i = 0; i < words.length; i += 2) {
    const high = words[i + 1];
    if (high >>> 31 === 0) {
      words[i + 1] = high | 0x8000_0000;
    } else {
      words[i + 1] = ~high;
      words[i] = ~words[i];
    }
  }
  return words;
}

export function digitOf(words: Uint32Array, at: number, level: number): number {
  if (level === 0) return words[at + 1] >>> 10;
  return level === 1 ? ((words[at + 1] & 1023) << 11) | (words[at] >>> 21) : words[at] & 0x1f_ffff;
}

/** Digits before a level as one integer below 2^43; 0 before the first level. */
export function prefixOf(words: Uint32Array, at: number, level: number): number {
  if (level === 0) return 0;
  return level === 1 ? digitOf(words, at, 0) : extended(digitOf(words, at, 0), 1, digitOf(words, at, 1));
}

/** Appends the digit of a level to a prefix. */
export function extended(prefix: number, level: number, digit: number): number {
  return level === 0 ? digit : prefix * digitCount(level) + digit;
}

/** The number whose first two digits are `prefix` (as one integer) and whose last digit is `last`. */
export function numberOf(prefix: number, last: number): number {
  const first = Math.floor(prefix / 2 ** 21);
  const second = prefix % 2 ** 21;
  const words = Uint32Array.of((second << 21) | last, (first << 10) | (second >>> 11));
  const negative = words[1] >>> 31 === 0;
  words[0] = negative ? ~words[0] : words[0];
  words[1] = negative ? ~words[1] : words[1] & 0x7fff_ffff;
  return new Float64Array(words.buffer)[0];
}
