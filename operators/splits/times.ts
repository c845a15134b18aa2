import { type DataType, DataType as Types, type RecordBatch, type Schema, TimeUnit } from 'apache-arrow';
import { DataError, type ErrorDetails, UsageError } from '../../engine/errors.ts';
import { placeOf } from '../../engine/stream/stream.ts';
import { fieldOf, numbersOf, requireNumbers } from '../ratings/rows/columns.ts';

/** Throws DataError unless the column exists and holds numbers or Arrow timestamps. */
export function requireTimes(schema: Schema, column: string): void {
  if (!schema.fields.some((field) => field.name === column)) {
    const names = schema.fields.map((field) => field.name).join(', ');
    throw new DataError(`there is no column "${column}"; there are: ${names}`, { phase: 'time-split', advice: 'Name the column of times: { timestampCol }' });
  }
  requireNumbers(schema, column);
}

/**
 * The times of a batch as float64, in the column's own unit; a view where they are float64 already. 64-bit integers above
 * 2^53 are rounded, which keeps their order. Throws DataError naming the first row without a time.
 */
export function timesOf(batch: RecordBatch, column: string): Float64Array {
  const data = batch.data.children[batch.schema.fields.findIndex((field) => field.name === column)];
  const times = numbersOf(data, Float64Array);
  for (let i = 0; i < times.length; i++) {
    const missing = data.nullCount > 0 && !data.getValid(i);
    if (!missing && !Number.isNaN(times[i])) continue;
    throw new DataError(`a row has no time: ${column} is ${missing ? 'null' : 'NaN'}`, {
      phase: 'time-split',
      ...placeInError(batch, i),
      column,
      advice: 'Leave such rows out before the split',
    });
  }
  return times;
}

/** The place of a row as an error names it. */
function placeInError(batch: RecordBatch, position: number): ErrorDetails {
  const { fault: _fault, ...place } = placeOf(batch, position) ?? {};
  return place;
}

/** Number of units of an Arrow timestamp in a millisecond. */
const perMillisecond = { [TimeUnit.SECOND]: 1e-3, [TimeUnit.MILLISECOND]: 1, [TimeUnit.MICROSECOND]: 1e3, [TimeUnit.NANOSECOND]: 1e6 };

/** A moment as a number in the column's unit. A Date has one only where the column is an Arrow timestamp. */
export function timeInUnit(time: number | Date, schema: Schema, column: string): number {
  const type: DataType = fieldOf(schema, column).type;
  const value = time instanceof Date && Types.isTimestamp(type) ? time.getTime() * perMillisecond[type.unit] : time;
  if (value instanceof Date) {
    throw new UsageError(`the column "${column}" holds ${type}, whose unit is unknown`, { advice: 'Give the time as a number in the unit of the column' });
  }
  if (!Number.isFinite(value)) throw new UsageError(`a time to split at must be a finite number or a Date, got ${String(time)}`);
  return value;
}
