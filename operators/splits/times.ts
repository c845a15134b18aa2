import {
  type Data,
  type DataType,
  DataType as Types,
  DateUnit,
  type RecordBatch,
  type Schema,
  TimeUnit,
} from 'apache-arrow';
import { DataError, type ErrorDetails, UsageError } from '../../engine/errors.ts';
import { placeOf } from '../../engine/stream/stream.ts';
import { hasNulls, isNullAt } from '../../engine/keys/arrow-keys.ts';
import { fieldOf, numbersOf, requireTimeValues } from '../ratings/rows/columns.ts';
import { isText, type OnRefusedText, timesOfTexts } from '../ratings/rows/text-values.ts';

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
const perMillisecond = {
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
  if (Types.isTimestamp(type)) return perMillisecond[type.unit];
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
