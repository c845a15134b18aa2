import {
  type RecordBatch,
  type Schema,
  type Data,
  DataType,
  DataType as Types,
  DateUnit,
  TimeUnit,
} from 'apache-arrow';
import { UsageError, DataError, type ErrorDetails } from '../../engine/errors.ts';
import { progressOf } from '../../engine/events.ts';
import { formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { hasNulls, isNullAt } from '../../engine/keys/arrow-keys.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import { placeOf } from '../../engine/stream/stream.ts';
import { columnOf, RowFilter } from '../dataflow/row-operator.ts';
import {
  fieldOf,
  numbersOf,
  requireTimeValues,
  isText,
  type OnRefusedText,
  timesOfTexts,
} from '../ratings/rows/columns.ts';
import { sizeOf } from '../ratings/rows/time-in.ts';

/** Times in [from, to), in the column's unit; an absent end is open. */
export interface TimeRange {
  readonly from?: number;
  readonly to?: number;
}

/** Keeps the rows whose time is in a range. All rows with the same time are on the same side of a cut. */
export class TimeSplit extends RowFilter {
  readonly name = 'time-split';
  readonly passesNeeds = true;
  readonly #column: string;
  readonly #range: TimeRange;

  constructor(column: string, range: TimeRange) {
    super([column, range]);
    const { from, to } = range;
    for (const end of [from, to])
      if (end !== undefined && Number.isNaN(end))
        throw new UsageError('the ends of a range of times must be numbers, got NaN');
    if (from !== undefined && to !== undefined && from >= to)
      throw new UsageError(`a range of times must end after it begins, got ${from} to ${to}`);
    this.#column = column;
    this.#range = range;
  }

  describe(): JsonObject {
    const { from = null, to = null } = this.#range;
    return { column: this.#column, from, to };
  }

  override outputSchema(input: Schema): Schema {
    requireTimes(input, this.#column);
    return input;
  }

  protected override readColumns(): readonly string[] {
    return [this.#column];
  }

  protected selection() {
    const { from = Number.NEGATIVE_INFINITY, to } = this.#range;
    return (batch: RecordBatch) => {
      const times = timesOf(batch, this.#column);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < times.length; i++)
        if (times[i] >= from && (to === undefined || times[i] < to)) positions[kept++] = i;
      return positions.subarray(0, kept);
    };
  }
}

/** Throws DataError unless the column exists and has numbers, timestamps, dates or text. */
export function requireTimes(schema: Schema, column: string): void {
  if (!schema.fields.some((field) => field.name === column)) {
    const names = schema.fields.map((field) => field.name).join(', ');
    throw new DataError(`there is no column "${column}"; there are: ${names}`, {
      phase: 'time-split',
      advice: 'Name the column of times: { timestampCol }',
    });
  }
  requireTimeValues(schema, column);
}

/**
 * Times of a column as float64: text in milliseconds, dates in days, others in the column's own unit.
 * Undefined at nulls.
 */
export function timeNumbers(data: Data, onRefused?: OnRefusedText): Float64Array {
  return isText(data.type) ? timesOfTexts(data, onRefused) : numbersOf(data, Float64Array);
}

/**
 * Times of a batch as float64 (see timeNumbers); a view if they are float64 already. 64-bit integers above
 * 2^53 are rounded, which keeps their order. Throws DataError that names the first row without a time.
 */
export function timesOf(batch: RecordBatch, column: string): Float64Array {
  const data = columnOf(batch, column);
  const refused = new Map<number, string>();
  const times = timeNumbers(data, (row, reason) => void refused.set(row, reason));
  for (let i = 0; i < times.length; i++) {
    const missing = hasNulls(data) && isNullAt(data, i);
    if (!missing && !Number.isNaN(times[i])) continue;
    throw new DataError(
      `a row has no time: ${column} ${missing ? 'is null' : (refused.get(i) ?? 'is NaN')}`,
      {
        phase: 'time-split',
        ...placeInError(batch, i),
        column,
        advice: 'Leave such rows out before the split',
      },
    );
  }
  return times;
}

/** Position of a row, for an error. */
function placeInError(batch: RecordBatch, position: number): ErrorDetails {
  const { fault: _fault, ...place } = placeOf(batch, position) ?? {};
  return place;
}

/** Units of an Arrow timestamp in a millisecond. */
const timestampUnits = {
  [TimeUnit.SECOND]: 1e-3,
  [TimeUnit.MILLISECOND]: 1,
  [TimeUnit.MICROSECOND]: 1e3,
  [TimeUnit.NANOSECOND]: 1e6,
};

/**
 * Units of a column in a millisecond; undefined for plain numbers, whose unit can only be guessed from their
 * magnitude.
 */
export function unitsPerMillisecond(type: DataType): number | undefined {
  if (Types.isTimestamp(type)) return timestampUnits[type.unit];
  if (Types.isDate(type)) return type.unit === DateUnit.DAY ? 1 / 86_400_000 : 1;
  return isText(type) ? 1 : undefined;
}

/**
 * Converts a point in time to the column's unit. A number is in that unit already; a Date is multiplied by
 * `units`, the number of units in a millisecond.
 */
export function timeInUnit(
  time: number | Date,
  schema: Schema,
  column: string,
  units: number | undefined,
): number {
  const type: DataType = fieldOf(schema, column).type;
  const value = time instanceof Date && units !== undefined ? time.getTime() * units : time;
  if (value instanceof Date) {
    throw new UsageError(`the column "${column}" holds ${type}, whose unit is unknown`, {
      advice: 'Give the time as a number in the unit of the column',
    });
  }
  if (!Number.isFinite(value))
    throw new UsageError(`a time to split at must be a finite number or a Date, got ${String(time)}`);
  return value;
}

const units = ['of no known unit', 'seconds', 'milliseconds', 'microseconds', 'nanoseconds'] as const;

/** Number of units in a millisecond, for each result of sizeOf: seconds, milli-, micro- and nanoseconds. */
const perMillisecond = [undefined, 1e-3, 1, 1e3, 1e6] as const;

/**
 * Counts times by their likely unit, guessed from their magnitude (see sizeOf). Only for columns of plain
 * numbers, since columns of timestamps, dates or text have a known unit.
 */
export class TimeSizes {
  readonly #column: string;
  readonly #isPlain: boolean;
  readonly #counts = new Float64Array(units.length);

  constructor(schema: Schema, column: string) {
    const { type } = fieldOf(schema, column);
    this.#column = column;
    this.#isPlain = DataType.isInt(type) || DataType.isFloat(type) || DataType.isDecimal(type);
  }

  add(times: Float64Array): void {
    if (!this.#isPlain) return;
    for (let i = 0; i < times.length; i++) this.#counts[sizeOf(times[i])]++;
  }

  /** Number of units in a millisecond; undefined if the magnitudes suggest no unit, or several. */
  get perMillisecond(): number | undefined {
    const used = this.#used;
    return used.length === 1 ? perMillisecond[used[0]] : undefined;
  }

  get #used(): readonly number[] {
    return [1, 2, 3, 4].filter((size) => this.#counts[size] > 0);
  }

  /** Reports the unit as a note, or warns about two units, which would give a wrong order of times. */
  report({ events }: Pick<ExecutionContext, 'events'>): void {
    const used = this.#used;
    if (used.length === 1)
      events({ type: 'note', text: `the times of ${this.#column} are ${units[used[0]]}, by their size` });
    if (used.length < 2) return;
    const counts = used.map((size) => `${formatCount(this.#counts[size])} ${units[size]}`);
    events({
      type: 'warning',
      text: `the times of ${this.#column} have different units by their size: ${counts.slice(0, -1).join(', ')} and ${counts.at(-1)}. They are ordered as plain numbers; bring them to one unit`,
    });
  }
}

/** Reads a column of times to find their unit from their magnitude. */
export function countTimeSizes(column: string): Sink<TimeSizes> {
  return {
    name: 'time-sizes',
    needs: { numbers: [column], takesFaults: true },
    describe: () => ({ column }),
    requiredColumns: () => [column],
    async consume(input) {
      requireTimes(input.schema, column);
      const sizes = new TimeSizes(input.schema, column);
      for await (const batch of input) sizes.add(known(columnOf(batch, column)));
      return sizes;
    },
  };
}

/** Times of a column, NaN at nulls. Rows without a time are handled where the times are used. */
function known(data: Data): Float64Array {
  const times = timeNumbers(data);
  return hasNulls(data) ? times.map((time, row) => (isNullAt(data, row) ? Number.NaN : time)) : times;
}

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
  return level === 1 ? digitOf(words, at, 0) : longerPrefix(digitOf(words, at, 0), 1, digitOf(words, at, 1));
}

/** Appends the digit of a level to a prefix. */
export function longerPrefix(prefix: number, level: number, digit: number): number {
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
   * True if the last digit of any time, the lowest 21 bits of its float64, is not 0. It
   * is 0 for whole seconds from 1970 to 2106 (0 to 2^32 - 1), so that their selection needs no third pass.
   */
  readonly lastDigitUsed: boolean;
  /** The likely units of the times, from their magnitude. Only filled in the first pass. */
  readonly sizes: TimeSizes;
}

/**
 * One pass of the radix selection: counts the next digit of the times that start with one of the prefixes.
 */
export function timeHistogram(column: string, level: number, prefixes: readonly number[]): Sink<TimeCounts> {
  return {
    name: 'time-histogram',
    describe: () => ({ column, level }),
    requiredColumns: () => [column],
    async consume(input, ctx) {
      requireTimes(input.schema, column);
      const counts = prefixes.map(() => new Float64Array(digitCount(level)));
      const sizes = new TimeSizes(input.schema, column);
      const progress = progressOf(ctx.events, 'time-split', 'rows');
      let rows = 0;
      let lastDigits = 0;
      for await (const batch of input) {
        const times = timesOf(batch, column);
        if (level === 0) sizes.add(times);
        const words = orderedWords(times);
        for (let i = 0; i < words.length; i += 2) {
          lastDigits |= digitOf(words, i, LEVELS - 1);
          const slot = prefixes.indexOf(prefixOf(words, i, level));
          if (slot >= 0) counts[slot][digitOf(words, i, level)]++;
        }
        rows += batch.numRows;
        progress.report(rows);
      }
      progress.flush();
      return { rows, counts, lastDigitUsed: lastDigits !== 0, sizes };
    },
  };
}
