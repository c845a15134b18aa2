import { shortestFloat32 } from '../numbers/half.ts';
import { dateText, offsetText, parseTimestamp, timestampText } from './civil.ts';
import { beyondDigits, decimalTexts, floatsOf, decimalParser, roundedNumbers, scaled } from './decimals.ts';
import {
  asDecimal,
  isDecimal,
  isFloat,
  isInteger,
  isNumber,
  isTime,
  isTimestamp,
  rangeOf,
  scaleOf,
  type ValueType,
  zoneOf,
} from './types.ts';
import { toLocal, toUtc, TimeZone } from './zones.ts';
import {
  splitTimes,
  timestamps,
  type BigValues,
  type BoolValues,
  bools,
  decimals,
  gather,
  integers,
  nulls,
  type NumberValues,
  numbersOf,
  type Values,
  type WideValues,
} from './values.ts';

/** Converted values and, if any failed, one byte per row: 1 if the value cannot be converted. */
export interface Converted {
  readonly values: Values;
  readonly failed?: Uint8Array;
}

export function isCastable(from: ValueType, to: ValueType): boolean {
  if (from === to || from === 'null') return true;
  const plain = (type: ValueType) => isNumber(type) || type === 'bool' || type === 'utf8';
  if (isTime(from)) return isTime(to) || to === 'utf8';
  return plain(from) && (plain(to) || (from === 'utf8' && isTime(to)));
}

/** False if every value of the first type can be converted to the second. */
export function castMayFail(from: ValueType, to: ValueType): boolean {
  if (from === to || from === 'null' || to === 'utf8' || to === 'bool') return from === 'utf8' && from !== to;
  if (from === 'utf8' || (from === 'date' && isTimestamp(to))) return true;
  if (isDecimal(from) || isDecimal(to)) return mayLoseDigits(from, to);
  if (!isInteger(to)) return false;
  if (!isInteger(from)) return isFloat(from);
  return rangeOf(from)[0] < rangeOf(to)[0] || rangeOf(from)[1] > rangeOf(to)[1];
}

/** True if digits before the point may be lost, also by rounding up; a truth value has one digit. */
function mayLoseDigits(from: ValueType, to: ValueType): boolean {
  if (isFloat(from) || isFloat(to)) return isFloat(from);
  const given = asDecimal(from) ?? { digits: 1, scale: 0 };
  const before = given.digits - given.scale + (given.scale > scaleOf(to) ? 1 : 0);
  if (isInteger(to)) return rangeOf(to)[0] === 0n || 10n ** BigInt(before) > rangeOf(to)[1];
  const wanted = asDecimal(to);
  return wanted !== undefined && before > wanted.digits - wanted.scale;
}

/** Converts a column to another type; nulls stay null. */
export function castValues(column: Values, to: ValueType): Converted {
  const shape = { type: to, length: column.length, valid: column.valid, constant: column.constant };
  if (column.type === to) return { values: column };
  if (column.form === 'opaque') return { values: nulls(to, column.length, column.constant) };
  if (column.form === 'text') return castTexts(column, to);
  if (isDecimal(to)) return castToDecimals(column, shape);
  if (isDecimal(column.type)) return castDecimals(column, shape);
  if (column.form === 'big') throw new Error(`${column.type} is not a decimal`);
  if (isInteger(to)) return column.form === 'wide' ? castWide(column, shape) : castNumbers(column, shape);
  if (column.type === 'date' && isTimestamp(to)) return castDates(numbersOf(column), shape);
  return { values: castTo(to, column, shape) };
}

function castToDecimals(column: Values, shape: Shape): Converted {
  if (isFloat(column.type)) return roundedNumbers(numbersOf(column), shape);
  const values = scaled(column, scaleOf(shape.type) - scaleOf(column.type), shape);
  return castMayFail(column.type, shape.type) ? { values, failed: beyondDigits(values) } : { values };
}

function castDecimals(column: Values, shape: Shape & { length: number }): Converted {
  const { type, length } = shape;
  if (type === 'utf8') return { values: { form: 'text', values: decimalTexts(column), ...shape } };
  if (type === 'bool') return { values: bools(Uint8Array.from(numbersOf(column), nonZero), shape) };
  if (isFloat(type)) {
    const numbers = floatsOf(column);
    const values = type === 'float32' ? numbers.map(Math.fround) : numbers;
    return { values: { form: 'number', values, ...shape, length } };
  }
  const whole = scaled(column, -scaleOf(column.type), { ...shape, type: column.type });
  return whole.form === 'big' ? castWide(whole, shape) : castNumbers(whole, shape);
}

/** Dates beyond the years -290308 to 294247 fail: timestamps count microseconds in 64 bits. */
function castDates(days: Float64Array, shape: Shape): Converted {
  const failed = Uint8Array.from(days, (day) => (Math.abs(day) > 106_751_990 ? 1 : 0));
  const known = days.map((day, i) => (failed[i] === 1 ? 0 : day));
  const micros = new Float64Array(days.length);
  const zone = zoneOf(shape.type);
  if (zone !== undefined) toUtc({ days: known, micros }, TimeZone.of(zone));
  return { values: timestamps(known, micros, { ...shape, length: days.length }), failed };
}

function castTo(
  to: ValueType,
  column: NumberValues | BoolValues | WideValues,
  shape: Shape & { length: number },
): Values {
  switch (to) {
    case 'utf8':
      return { form: 'text', values: textOf(column), ...shape };
    case 'date':
      return { form: 'number', values: localTimes(column).days, ...shape };
    case 'bool':
      return bools(Uint8Array.from(numbersOf(column), nonZero), shape);
    case 'float32':
      return { form: 'number', values: numbersOf(column).map(Math.fround), ...shape };
    default:
      if (column.form === 'wide' && isTimestamp(to)) return { ...column, type: to };
      return { form: 'number', values: numbersOf(column), ...shape };
  }
}

function castWide({ values, type }: WideValues | BigValues, shape: Shape): Converted {
  const cast = shape.type === 'uint64' ? BigUint64Array.from(values) : BigInt64Array.from(values);
  if (!castMayFail(type, shape.type)) return { values: integers(cast, shape) };
  const [low, high] = rangeOf(shape.type);
  const failed = new Uint8Array(values.length);
  for (let i = 0; i < failed.length; i++) {
    failed[i] = Number(values[i] < low) | Number(values[i] > high);
    if (failed[i] === 1) cast[i] = 0n;
  }
  return { values: integers(cast, shape), failed };
}

/** Fractions are cut off; values out of range fail. */
function castNumbers(column: NumberValues | BoolValues, shape: Shape): Converted {
  const given = numbersOf(column);
  const { length } = given;
  if (isInteger(column.type) && !castMayFail(column.type, shape.type))
    return { values: { form: 'number', length, values: given, ...shape } };
  const numbers = given.map(Math.trunc);
  const [low, high] = rangeOf(shape.type);
  // 2^63 and 2^64 are exact floats, the integers below them are not.
  const [least, most] = [Number(low), Number(high + 1n)];
  const failed = new Uint8Array(length);
  let unsafe = false;
  for (let i = 0; i < length; i++) {
    const value = numbers[i];
    if (!(value >= least && value < most)) failed[i] = 1;
    else if (Math.abs(value) > Number.MAX_SAFE_INTEGER) unsafe = true;
  }
  if (!unsafe) return { values: { form: 'number', length, values: numbers, ...shape }, failed };
  const big = Array.from(numbers, (value, i) => (failed[i] === 1 ? 0n : BigInt(value)));
  const wide = shape.type === 'uint64' ? BigUint64Array.from(big) : BigInt64Array.from(big);
  return { values: integers(wide, shape), failed };
}

const nonZero = (value: number) => (value === 0 ? 0 : 1);

function castTexts(column: Values & { form: 'text' }, to: ValueType): Converted {
  const { codes, constant } = column;
  const entries: Values = { ...column, length: column.values.length, codes: undefined, valid: undefined };
  const whole = codes === undefined ? column : entries;
  const failed = new Uint8Array(whole.length);
  const values = parseTexts(column.values, to, failed, { type: to, valid: whole.valid, constant });
  if (codes === undefined) return { values, failed };
  const failures = gather(bools(failed, { constant }), codes, undefined);
  return {
    values: gather(values, codes, column.valid),
    failed: failures.form === 'bool' ? failures.values : failed,
  };
}

interface Shape {
  readonly type: ValueType;
  readonly valid?: Uint8Array;
  readonly constant: boolean;
}

function parseTexts(texts: readonly string[], to: ValueType, failed: Uint8Array, shape: Shape): Values {
  const { length } = texts;
  if (isDecimal(to)) return parseDecimals(texts, failed, shape);
  if (!isFloat(to) && to !== 'bool') return parseIntegers(texts, to, failed, shape);
  const parse = to === 'bool' ? parseBool : parseFloat64;
  const values = new Float64Array(length);
  for (let i = 0; i < length; i++) {
    const value = parse(texts[i]);
    if (value === undefined) failed[i] = 1;
    else values[i] = value;
  }
  if (to === 'bool') return bools(Uint8Array.from(values), shape);
  return { form: 'number', length, values: to === 'float32' ? values.map(Math.fround) : values, ...shape };
}

function parseDecimals(texts: readonly string[], failed: Uint8Array, shape: Shape): Values {
  const parse = decimalParser(shape.type);
  const values = texts.map((text, i) => {
    const value = parse(text);
    if (value === undefined) failed[i] = 1;
    return value ?? 0n;
  });
  return decimals(values, shape);
}

/** Parses integers, and times as their count of microseconds. */
function parseIntegers(texts: readonly string[], to: ValueType, failed: Uint8Array, shape: Shape): Values {
  const { length } = texts;
  const values = to === 'uint64' ? new BigUint64Array(length) : new BigInt64Array(length);
  const zone = zoneOf(to);
  const parse = zone === undefined ? (isTime(to) ? parseTimestamp : parseInteger) : zonedParser(zone);
  const [low, high] = rangeOf(isInteger(to) ? to : 'int64');
  for (let i = 0; i < length; i++) {
    const value = parse(texts[i]);
    if (value === undefined || value < low || value > high) failed[i] = 1;
    else values[i] = value;
  }
  const column = integers(values, to === 'date' ? { ...shape, type: 'timestamp' } : shape);
  return to === 'date' ? { ...shape, form: 'number', length, values: splitTimes(column).days } : column;
}

/** Texts without an offset are times of the zone. */
function zonedParser(name: string): (text: string) => bigint | undefined {
  const zone = TimeZone.of(name);
  return (text) => parseTimestamp(text, (local) => zone.timeOf(local) - local);
}

function parseInteger(text: string): bigint | undefined {
  const digits = /^\s*([+-]?\d+)\s*$/.exec(text)?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}

function parseFloat64(text: string): number | undefined {
  if (/^\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*$/i.test(text)) return Number(text);
  const [, sign, word] = /^\s*([+-]?)(nan|inf|infinity)\s*$/i.exec(text) ?? [];
  if (word === undefined) return undefined;
  return word.toLowerCase() === 'nan' ? Number.NaN : sign === '-' ? -Infinity : Infinity;
}

function parseBool(text: string): number | undefined {
  const word = text.trim().toLowerCase();
  if (['true', 't', 'yes', 'y', '1'].includes(word)) return 1;
  return ['false', 'f', 'no', 'n', '0'].includes(word) ? 0 : undefined;
}

function textOf(column: Values): string[] {
  const { type } = column;
  if (column.form === 'bool') return Array.from(column.values, (value) => (value === 1 ? 'true' : 'false'));
  if (type === 'date') return Array.from(numbersOf(column), dateText);
  if (isTimestamp(type)) {
    const { days, micros, offsets } = localTimes(column);
    const offset = (i: number) => (offsets === undefined ? '' : offsetText(offsets[i]));
    return Array.from(days, (day, i) => `${timestampText(day, micros[i])}${offset(i)}`);
  }
  if (isDecimal(type)) return decimalTexts(column);
  if (column.form === 'wide') return Array.from(column.values, String);
  const numbers = numbersOf(column);
  return Array.from(numbers, type === 'float32' ? (value) => String(shortestFloat32(value)) : String);
}

/** Dates and timestamps as days and microseconds of the day in their zone, with its offsets in seconds. */
export function localTimes(
  column: Values,
  name = zoneOf(column.type),
): { days: Float64Array; micros: Float64Array; offsets?: Float64Array } {
  const times = splitTimes(column);
  return name === undefined ? times : { ...times, offsets: toLocal(times, TimeZone.of(name)) };
}

/** The text of one value, as errors and printed expressions have it. */
export function textAt(column: Values, row: number): string {
  if (column.form === 'text') return column.values[column.codes?.[row] ?? row];
  const one = gather(column, Uint32Array.of(row), undefined);
  return one.form === 'opaque' || one.form === 'text' ? '' : textOf(one)[0];
}
