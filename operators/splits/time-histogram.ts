import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { requireTimes, TimeSizes, timesOf } from './times.ts';

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
function digitCount(level: number): number {
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

interface TimeCounts {
  readonly rows: number;
  /** For each requested prefix, the number of times with each value of the next digit. */
  readonly counts: readonly Float64Array[];
  /**
   * True if the last digit (see time-digits.ts) of any time, the lowest 21 bits of its float64, is not 0. It
   * is 0 for whole seconds from 1970 to 2106 (0 to 2^32 - 1), so that their selection needs no third pass.
   */
  readonly lastDigitUsed: boolean;
  /** The likely units of the times, from their magnitude. Only filled in the first pass. */
  readonly sizes: TimeSizes;
}

/**
 * One pass of the radix selection (see time-digits.ts): counts the next digit of the times that start with
 * one of the prefixes.
 */
export class TimeHistogram implements Sink<TimeCounts> {
  readonly name = 'time-histogram';
  readonly #column: string;
  readonly #level: number;
  readonly #prefixes: readonly number[];

  constructor(column: string, level: number, prefixes: readonly number[]) {
    this.#column = column;
    this.#level = level;
    this.#prefixes = prefixes;
  }

  describe(): JsonObject {
    return { column: this.#column, level: this.#level };
  }

  requiredColumns(): readonly string[] {
    return [this.#column];
  }

  async consume(input: BatchStream, ctx: ExecutionContext): Promise<TimeCounts> {
    requireTimes(input.schema, this.#column);
    const [level, prefixes] = [this.#level, this.#prefixes];
    const counts = prefixes.map(() => new Float64Array(digitCount(level)));
    const sizes = new TimeSizes(input.schema, this.#column);
    let rows = 0;
    let lastDigits = 0;
    for await (const batch of input) {
      const times = timesOf(batch, this.#column);
      if (level === 0) sizes.add(times);
      const words = orderedWords(times);
      for (let i = 0; i < words.length; i += 2) {
        lastDigits |= digitOf(words, i, LEVELS - 1);
        const slot = prefixes.indexOf(prefixOf(words, i, level));
        if (slot >= 0) counts[slot][digitOf(words, i, level)]++;
      }
      rows += batch.numRows;
      ctx.events({ type: 'phase-progress', phase: 'time-split', done: rows, unit: 'rows' });
    }
    return { rows, counts, lastDigitUsed: lastDigits !== 0, sizes };
  }
}
