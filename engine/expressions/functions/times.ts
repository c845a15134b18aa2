import { DAY } from '../civil.ts';
import type { ValueType } from '../types.ts';
import { integers, numbersOf, type Values } from '../values.ts';

interface Shape {
  readonly type: ValueType;
  readonly length: number;
  readonly valid?: Uint8Array;
  readonly constant: boolean;
}

/** Dates and timestamps as days since 1970 and microseconds of the day. */
export function splitTimes(column: Values): { days: Float64Array; micros: Float64Array } {
  const micros = new Float64Array(column.length);
  if (column.type === 'date') return { days: numbersOf(column), micros };
  const days = new Float64Array(column.length);
  if (column.form === 'wide') {
    for (let i = 0; i < days.length; i++) {
      const value = BigInt.asIntN(64, column.values[i]);
      const rest = Number(value % BigInt(DAY));
      micros[i] = rest < 0 ? rest + DAY : rest;
      days[i] = Number((value - BigInt(micros[i])) / BigInt(DAY));
    }
  } else {
    const values = numbersOf(column);
    for (let i = 0; i < days.length; i++) {
      days[i] = Math.floor(values[i] / DAY);
      micros[i] = values[i] - days[i] * DAY;
    }
  }
  return { days, micros };
}

/** Timestamps of days and microseconds of the day. */
export function timestamps(days: Float64Array, micros: Float64Array | undefined, shape: Shape): Values {
  const values = new Float64Array(days.length);
  let safe = true;
  for (let i = 0; i < values.length; i++) {
    values[i] = days[i] * DAY + (micros === undefined ? 0 : micros[i]);
    safe &&= Math.abs(values[i]) <= Number.MAX_SAFE_INTEGER;
  }
  if (safe) return { form: 'number', values, ...shape };
  const exact = Array.from(days, (day, i) => BigInt(day) * BigInt(DAY) + BigInt(micros?.[i] ?? 0));
  return integers(BigInt64Array.from(exact), shape);
}
