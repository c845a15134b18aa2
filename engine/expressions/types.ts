import {
  Bool,
  type DataType,
  DataType as Types,
  DateDay,
  Decimal,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  Null,
  Precision,
  TimestampMicrosecond,
  Type,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
} from 'apache-arrow';

import { isUuid } from '../values/value-texts.ts';
import { TimeZone } from './zones.ts';

/**
 * Types of values in expressions. Timestamps count microseconds of UTC, dates days, both since 1970. A
 * timestamp of a zone, such as `timestamp(Europe/Berlin)`, has its days and hours in that zone. Values of
 * `decimal(10,2)` have at most 10 digits, 2 of them after the point: they count hundredths.
 */
export type ValueType = keyof typeof arrowTypes | `timestamp(${string})` | `decimal(${number},${number})`;

const arrowTypes = {
  null: () => new Null(),
  bool: () => new Bool(),
  int8: () => new Int8(),
  int16: () => new Int16(),
  int32: () => new Int32(),
  int64: () => new Int64(),
  uint8: () => new Uint8(),
  uint16: () => new Uint16(),
  uint32: () => new Uint32(),
  uint64: () => new Uint64(),
  float32: () => new Float32(),
  float64: () => new Float64(),
  utf8: () => new Utf8(),
  date: () => new DateDay(),
  timestamp: () => new TimestampMicrosecond(),
  /** Lists, structs and others: only isNull can be applied to them. */
  other: () => new Null(),
};

type PlainType = Exclude<keyof typeof arrowTypes, 'other'>;

/** The types without parameters. */
export const valueTypes = Object.keys(arrowTypes).filter((name): name is PlainType => name !== 'other');

/** The names of all types, for messages. */
export const typeList = `${valueTypes.join(', ')}, decimal(digits,scale) of at most 38 digits`;

/** True for the name of a type. Throws UsageError for an unknown time zone. */
export function isValueType(name: unknown): name is ValueType {
  if (typeof name !== 'string') return false;
  const zone = zoneOf(name as ValueType);
  if (zone !== undefined) TimeZone.of(zone);
  const shape = decimalOf(name as ValueType);
  if (shape !== undefined)
    return shape.digits > 0 && shape.digits <= MOST_DIGITS && shape.scale <= shape.digits;
  return zone !== undefined || valueTypes.some((type) => type === name);
}

/** Most digits of a column of decimals. Comparisons use wider types, which keep both values. */
export const MOST_DIGITS = 38;

/** The digits of a decimal type in all, and those after the point. */
interface DecimalShape {
  readonly digits: number;
  readonly scale: number;
}

/** Undefined for other types. */
export function decimalOf(type: ValueType): DecimalShape | undefined {
  const [, digits, scale] = /^decimal\((\d+),(\d+)\)$/.exec(type) ?? [];
  return digits === undefined ? undefined : { digits: Number(digits), scale: Number(scale) };
}

export function decimalType({ digits, scale }: DecimalShape): ValueType {
  return `decimal(${digits},${scale})`;
}

/** Digits after the point; 0 for types other than decimals. */
export function scaleOf(type: ValueType): number {
  return decimalOf(type)?.scale ?? 0;
}

/** A decimal type that has all values of a decimal or integer type; undefined for other types. */
export function asDecimal(type: ValueType): DecimalShape | undefined {
  const { signed, bits } = integer(type) ?? {};
  if (bits === undefined) return decimalOf(type);
  return { digits: bits === 64 && !signed ? 20 : { 8: 3, 16: 5, 32: 10, 64: 19 }[bits]!, scale: 0 };
}

/** The time zone of a type of timestamps; undefined if it has none. */
export function zoneOf(type: ValueType): string | undefined {
  return /^timestamp\((.+)\)$/.exec(type)?.[1];
}

/** Timestamps, with or without a zone. */
export function isTimestamp(type: ValueType): type is 'timestamp' | `timestamp(${string})` {
  return type.startsWith('timestamp');
}

/** JavaScript values of the types of columns, as `toArray` gives them. */
interface ValuesOf extends Record<ValueType, unknown> {
  null: null;
  bool: boolean;
  int8: number;
  int16: number;
  int32: number;
  int64: bigint;
  uint8: number;
  uint16: number;
  uint32: number;
  uint64: bigint;
  float32: number;
  float64: number;
  utf8: string;
  date: Date;
  timestamp: Date;
  [zoned: `timestamp(${string})`]: Date;
  [decimal: `decimal(${number},${number})`]: number | string;
}

/** The value of a column of a type, or null. */
export type ValueOf<Type extends ValueType> = ValuesOf[Type] | null;

/** The Arrow type of computed values; a bare column keeps its own. */
export function arrowTypeOf(type: ValueType): DataType {
  const zone = zoneOf(type);
  if (zone !== undefined) return new TimestampMicrosecond(zone);
  const decimal = decimalOf(type);
  if (decimal !== undefined) return new Decimal(decimal.scale, decimal.digits, 128);
  return arrowTypes[type as keyof typeof arrowTypes]();
}

const plainTypes: Readonly<Record<number, ValueType>> = {
  [Type.Null]: 'null',
  [Type.Bool]: 'bool',
  [Type.Utf8]: 'utf8',
  [Type.LargeUtf8]: 'utf8',
  [Type.Utf8View]: 'utf8',
  [Type.Date]: 'date',
};

/** The value type of an Arrow column; a UUID is its text. */
export function valueTypeOf(type: DataType): ValueType {
  if (Types.isDictionary(type)) return valueTypeOf(type.dictionary);
  if (Types.isInt(type)) return `${type.isSigned ? 'int' : 'uint'}${type.bitWidth}`;
  if (Types.isFloat(type)) return type.precision === Precision.DOUBLE ? 'float64' : 'float32';
  if (isUuid(type)) return 'utf8';
  if (Types.isTimestamp(type)) return type.timezone ? `timestamp(${type.timezone})` : 'timestamp';
  if (Types.isDecimal(type)) return valueTypeOfDecimal(type);
  return plainTypes[type.typeId] ?? 'other';
}

/** Decimals of more than 38 digits are read as 38, if their values fit. */
function valueTypeOfDecimal({ precision, scale }: Decimal): ValueType {
  const digits = Math.max(precision, scale) - Math.min(scale, 0);
  return scale > MOST_DIGITS
    ? 'other'
    : decimalType({ digits: Math.min(digits, MOST_DIGITS), scale: Math.max(scale, 0) });
}

/** Width and sign of an integer type; undefined for other types. */
function integer(type: ValueType): { readonly signed: boolean; readonly bits: number } | undefined {
  const found = /^(u?)int(\d+)$/.exec(type);
  return found ? { signed: found[1] === '', bits: Number(found[2]) } : undefined;
}

export function isInteger(type: ValueType): boolean {
  return integer(type) !== undefined;
}

export function isFloat(type: ValueType): boolean {
  return type === 'float32' || type === 'float64';
}

export function isDecimal(type: ValueType): boolean {
  return decimalOf(type) !== undefined;
}

export function isNumber(type: ValueType): boolean {
  return isInteger(type) || isFloat(type) || isDecimal(type);
}

export function isTime(type: ValueType): boolean {
  return type === 'date' || isTimestamp(type);
}

/** The least and the largest value of an integer type; of a decimal type in units of its last digit. */
export function rangeOf(type: ValueType): readonly [bigint, bigint] {
  const decimal = decimalOf(type);
  if (decimal !== undefined) return [1n - 10n ** BigInt(decimal.digits), 10n ** BigInt(decimal.digits) - 1n];
  const { signed, bits } = integer(type) ?? { signed: true, bits: 64 };
  return signed ? [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n] : [0n, 2n ** BigInt(bits) - 1n];
}

/**
 * The smallest type that holds the values of both; int64 for uint64 with a signed type. Decimals of more than
 * `most` digits lose digits after the point.
 */
export function widen(left: ValueType, right: ValueType, most = MOST_DIGITS): ValueType | undefined {
  if (left === right || right === 'null') return left;
  if (left === 'null') return right;
  if (isTime(left) && isTime(right)) return widenTimes(left, right);
  if (!isNumber(left) || !isNumber(right)) return undefined;
  if (left === 'float64' || right === 'float64') return 'float64';
  if (left === 'float32' || right === 'float32') return 'float32';
  return isDecimal(left) || isDecimal(right) ? widenDecimals(left, right, most) : widenIntegers(left, right);
}

/** The digits of both on both sides of the point, as far as there are `most`. */
function widenDecimals(left: ValueType, right: ValueType, most: number): ValueType {
  const shapes = [left, right].map((type) => asDecimal(type) ?? { digits: 0, scale: 0 });
  const scale = Math.max(...shapes.map((shape) => shape.scale));
  const before = Math.max(...shapes.map((shape) => shape.digits - shape.scale));
  const digits = Math.min(before + scale, most);
  const isOfDecimals = isDecimal(left) && isDecimal(right);
  return decimalType({ digits, scale: isOfDecimals ? Math.min(scale, digits - before) : scale });
}

/** Times of two zones have UTC. */
function widenTimes(left: ValueType, right: ValueType): ValueType {
  const zones = [left, right].flatMap((type) => zoneOf(type) ?? []);
  if (zones.length === 0) return 'timestamp';
  return `timestamp(${zones.every((zone) => zone === zones[0]) ? zones[0] : 'UTC'})`;
}

function widenIntegers(left: ValueType, right: ValueType): ValueType {
  const [[low, high], [otherLow, otherHigh]] = [rangeOf(left), rangeOf(right)];
  const [least, most] = [low < otherLow ? low : otherLow, high > otherHigh ? high : otherHigh];
  const fits = (type: ValueType) => rangeOf(type)[0] <= least && rangeOf(type)[1] >= most;
  return [left, right].find(fits) ?? (['int16', 'int32'] as const).find(fits) ?? 'int64';
}
