import {
  type Data,
  DataType,
  DataType as Types,
  DateUnit,
  type RecordBatch,
  type Schema,
  TimeUnit,
} from 'apache-arrow';
import { DataError, type ErrorDetails, UsageError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { hasNulls, isNullAt } from '../../engine/keys/arrow-keys.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Sink, ValueNeeds } from '../../engine/stream/operator.ts';
import { type BatchStream, placeOf } from '../../engine/stream/stream.ts';
import { fieldOf, numbersOf, requireTimeValues } from '../ratings/rows/columns.ts';
import { isText, type OnRefusedText, timesOfTexts } from '../ratings/rows/text-values.ts';
import { sizeOf } from '../ratings/rows/time-in.ts';

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
  const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === column)];
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
