import { type Data, DataType, type Schema } from 'apache-arrow';
import { formatCount } from '../../engine/format.ts';
import { hasNulls, isNullAt } from '../../engine/keys/arrow-keys.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Sink, ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { fieldOf } from '../ratings/rows/columns.ts';
import { sizeOf } from '../ratings/rows/time-in.ts';
import { requireTimes, timeNumbers } from './times.ts';

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
export class CountTimeSizes implements Sink<TimeSizes> {
  readonly name = 'time-sizes';
  readonly #column: string;

  constructor(column: string) {
    this.#column = column;
  }

  describe(): JsonObject {
    return { column: this.#column };
  }

  get needs(): ValueNeeds {
    return { numbers: [this.#column], takesFaults: true };
  }

  requiredColumns(): readonly string[] {
    return [this.#column];
  }

  async consume(input: BatchStream): Promise<TimeSizes> {
    requireTimes(input.schema, this.#column);
    const sizes = new TimeSizes(input.schema, this.#column);
    for await (const batch of input)
      sizes.add(
        known(batch.data.children[batch.schema.fields.findIndex(({ name }) => name === this.#column)]),
      );
    return sizes;
  }
}

/** Times of a column, NaN at nulls. Rows without a time are handled where the times are used. */
function known(data: Data): Float64Array {
  const times = timeNumbers(data);
  return hasNulls(data) ? times.map((time, row) => (isNullAt(data, row) ? Number.NaN : time)) : times;
}
