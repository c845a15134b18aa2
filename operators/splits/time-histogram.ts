import type { JsonObject } from '../../engine/json.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { digitCount, digitOf, LEVELS, orderedWords, prefixOf } from './time-digits.ts';
import { TimeSizes } from './time-sizes.ts';
import { requireTimes, timesOf } from './times.ts';

export interface TimeCounts {
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
