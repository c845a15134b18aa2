import type { Data } from 'apache-arrow';
import { takeData } from '../stream/take-data.ts';
import { DAY } from './civil.ts';
import type { ValueType } from './types.ts';

/** Texts as Arrow stores them: text i is the UTF-8 bytes from offsets[i] to offsets[i + 1]. */
export interface Utf8Texts {
  readonly offsets: Int32Array;
  readonly bytes: Uint8Array;
}

interface Shape {
  readonly type: ValueType;
  readonly length: number;
  /** One byte per row, 0 for null; undefined if no row is null. */
  readonly valid?: Uint8Array;
  /** True if there is one row, which holds for all rows of a batch. */
  readonly constant: boolean;
}

/**
 * Numbers, dates and timestamps, all as float64. Every integer among them is safe (at most 2^53 - 1 in size).
 * Decimals count units of their last digit: 4.50 of decimal(5,2) is 450.
 */
export interface NumberValues extends Shape {
  readonly form: 'number';
  readonly values: Float64Array;
}

/** 64-bit integers and timestamps, some of which float64 cannot hold exactly. */
export interface WideValues extends Shape {
  readonly form: 'wide';
  readonly values: BigInt64Array | BigUint64Array;
}

/** Decimals, some of which float64 cannot hold exactly, in units of their last digit. Nulls are 0. */
export interface BigValues extends Shape {
  readonly form: 'big';
  readonly values: readonly bigint[];
}

/** One byte per row: 0 or 1. */
export interface BoolValues extends Shape {
  readonly form: 'bool';
  readonly values: Uint8Array;
}

/** Texts by row or, with `codes`, by dictionary: the text of row i is values[codes[i]]. */
export interface TextValues extends Shape {
  readonly form: 'text';
  /** Texts of a stored column are decoded at the first use. */
  readonly values: readonly string[];
  readonly codes?: Int32Array;
  /** The stored bytes of the same texts, if known. */
  readonly utf8?: Utf8Texts;
}

/** Nulls, or values of other types, such as lists and structs, as Arrow stores them. */
export interface OpaqueValues extends Shape {
  readonly form: 'opaque';
  /** Undefined if all values are null. */
  readonly data?: Data;
}

/** A column in the form that kernels use. The value of a null is undefined. */
export type Values = NumberValues | WideValues | BigValues | BoolValues | TextValues | OpaqueValues;

export const bools = (values: Uint8Array, shape: Omit<Shape, 'type' | 'length'>): BoolValues => ({
  form: 'bool',
  type: 'bool',
  length: values.length,
  values,
  valid: shape.valid,
  constant: shape.constant,
});

/**
 * The mask for row numbers: row i is `values[i & maskOf(values)]`, also for constants, which have only row 0.
 */
export const maskOf = (values: Values): number => (values.constant ? 0 : -1);

export function nulls(type: ValueType, length: number, constant: boolean): OpaqueValues {
  return { form: 'opaque', type, length, valid: new Uint8Array(length), constant };
}

/** Rows that are valid in all columns; undefined if all rows are. */
export function validOfAll(columns: readonly Values[], length: number): Uint8Array | undefined {
  let valid: Uint8Array | undefined;
  for (const column of columns) {
    if (column.valid === undefined) continue;
    const mask = maskOf(column);
    const [from, first] = [column.valid, valid === undefined];
    valid ??= new Uint8Array(length);
    if (first) for (let i = 0; i < length; i++) valid[i] = from[i & mask];
    else for (let i = 0; i < length; i++) valid[i] &= from[i & mask];
  }
  return valid;
}

/**
 * The numbers of a column for kernels that compute in float64; wide integers are rounded. Decimals stay in units
 * of their last digit: cast them to float64 first where these are not wanted.
 */
export function numbersOf(column: Values): Float64Array {
  if (column.form === 'number') return column.values;
  if (column.form === 'bool') return new Float64Array(column.values);
  const numbers = new Float64Array(column.length);
  if (column.form === 'wide' || column.form === 'big')
    for (let i = 0; i < numbers.length; i++) numbers[i] = Number(column.values[i]);
  return numbers;
}

/** 64-bit integers as pairs of 32-bit halves, low first; the high half has the sign, if any. */
export function halvesOf(values: BigInt64Array | BigUint64Array): {
  low: Uint32Array;
  high: Int32Array | Uint32Array;
} {
  const low = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  if (values instanceof BigUint64Array) return { low, high: low };
  return { low, high: new Int32Array(values.buffer, values.byteOffset, values.length * 2) };
}

/** The integers of a column as 64-bit integers. */
export function wideOf(column: Values): BigInt64Array | BigUint64Array {
  if (column.form === 'wide') return column.values;
  const wide = new BigInt64Array(column.length);
  if (column.form === 'bool') return wide.map((_, i) => BigInt(column.values[i]));
  if (column.form !== 'number') return wide;
  const halves = new Int32Array(wide.buffer);
  for (let i = 0; i < column.length; i++) {
    const value = column.values[i];
    const high = Math.floor(value / 2 ** 32);
    halves[2 * i] = value - high * 2 ** 32;
    halves[2 * i + 1] = high;
  }
  return wide;
}

/** 64-bit integers as float64 numbers if all of them are safe; otherwise unchanged. */
export function integers(
  values: BigInt64Array | BigUint64Array,
  { type, valid, constant }: Omit<Shape, 'length'>,
): NumberValues | WideValues {
  const { low, high } = halvesOf(values);
  const numbers = new Float64Array(values.length);
  const most = Number.MAX_SAFE_INTEGER;
  let safe = true;
  for (let i = 0; i < numbers.length; i++) {
    const value = high[2 * i + 1] * 2 ** 32 + low[2 * i];
    numbers[i] = value;
    if ((value > most || value < -most) && (valid === undefined || valid[i] === 1)) safe = false;
  }
  const shape = { type, length: values.length, valid, constant };
  return safe ? { form: 'number', values: numbers, ...shape } : { form: 'wide', values, ...shape };
}

/** The integers of a column, or its decimals in units of their last digit. */
export function bigsOf(column: Values): ArrayLike<bigint> & Iterable<bigint> {
  return column.form === 'big' ? column.values : wideOf(column);
}

/** Decimals as float64 numbers if all of them are safe. */
export function decimals(values: readonly bigint[], shape: Omit<Shape, 'length'>): NumberValues | BigValues {
  const { length } = values;
  const numbers = Float64Array.from(values, Number);
  const isSafe = numbers.every((value) => Math.abs(value) <= Number.MAX_SAFE_INTEGER);
  return isSafe
    ? { form: 'number', values: numbers, length, ...shape }
    : { form: 'big', values, length, ...shape };
}

export function textsOf(column: Values): readonly string[] {
  if (column.form !== 'text') return Array.from({ length: column.length }, () => '');
  const { values, codes } = column;
  return codes === undefined ? values : Array.from(codes, (code) => values[code] ?? '');
}

/** The rows at the given positions, of a column without codes. */
export function gather(column: Values, at: Int32Array | Uint32Array, valid: Uint8Array | undefined): Values {
  const shape = { type: column.type, length: at.length, valid, constant: false };
  switch (column.form) {
    case 'number': {
      const values = new Float64Array(at.length);
      for (let i = 0; i < at.length; i++) values[i] = column.values[at[i]];
      return { form: 'number', values, ...shape };
    }
    case 'bool': {
      const values = new Uint8Array(at.length);
      for (let i = 0; i < at.length; i++) values[i] = column.values[at[i]];
      return { form: 'bool', values, ...shape };
    }
    case 'wide': {
      const values =
        column.values instanceof BigUint64Array
          ? new BigUint64Array(at.length)
          : new BigInt64Array(at.length);
      for (let i = 0; i < at.length; i++) values[i] = column.values[at[i]];
      return { form: 'wide', values, ...shape };
    }
    case 'big':
      return { form: 'big', values: Array.from(at, (row) => column.values[row] ?? 0n), ...shape };
    case 'text':
      return { form: 'text', values: column.values, codes: Int32Array.from(at), ...shape };
    default:
      return { form: 'opaque', data: column.data && takeData(column.data, Uint32Array.from(at)), ...shape };
  }
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
