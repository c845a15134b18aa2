import { type Data, DataType, DateUnit, type Schema } from 'apache-arrow';
import { offsetText } from '../expressions/civil.ts';
import { TimeZone } from '../expressions/zones.ts';
import { shortestFloat32, fromHalf } from '../numbers/half.ts';
import { unionPlace } from '../stream/take-data.ts';
import {
  bytesAt,
  dateAndTime,
  elementsAt,
  entryValues,
  isBytes,
  isList,
  splitSeconds,
  type TextStyle,
  valueTexts,
} from './value-texts.ts';

/**
 * Values as people read them. Times are ISO 8601: `2024-01-31T12:30:00.25`, in a column with a time zone the
 * time there and its offset: `2024-01-31T12:30:00+01:00`, or Z for none.
 */
export const readableStyle: TextStyle = {
  float: (value, isDouble) => String(isDouble ? value : shortestFloat32(value)),
  timestamp: (count, { unit, timezone }) => {
    const digits = 3 * unit;
    const offset = timezone ? offsetAt(timezone, splitSeconds(count, digits).seconds) : 0;
    const local = dateAndTime(count + BigInt(offset) * 10n ** BigInt(digits), digits).replace(' ', 'T');
    if (!timezone) return local;
    return `${local}${offset === 0 ? 'Z' : offsetText(offset).replace(/^.\d\d$/, '$&:00')}`;
  },
};

/** Seconds to add to UTC; 0 in a zone that is not known here. */
function offsetAt(zone: string, seconds: number): number {
  try {
    return TimeZone.of(zone).offsetAt(seconds);
  } catch {
    return 0;
  }
}

/**
 * The JavaScript values of a column, by row; null for a null. 64-bit integers are bigints. Dates and timestamps
 * are Dates, which have whole milliseconds: microseconds are cut off, and a time beyond the years ±271,821 is
 * an invalid Date. Times of day and durations are milliseconds. Decimals are numbers if a number has all their digits, else
 * text. UUIDs and intervals are text, other bytes are Uint8Array, lists are arrays, structs and maps objects.
 */
export function plainValues(data: Data): (row: number) => unknown {
  const value = valuesOf(data);
  if (DataType.isNull(data.type)) return () => null;
  return (row) => (data.nullCount > 0 && !data.getValid(row) ? null : value(row));
}

/** The rows of a batch's columns as objects, by column name. */
export function plainRows(
  { fields }: Pick<Schema, 'fields'>,
  columns: readonly Data[],
): (row: number) => Record<string, unknown> {
  const values = columns.map(plainValues);
  return (row) => {
    const object: Record<string, unknown> = {};
    for (let i = 0; i < fields.length; i++) setOwn(object, fields[i].name, values[i](row));
    return object;
  };
}

function valuesOf(data: Data): (row: number) => unknown {
  const { type } = data;
  const values = data.values as Float64Array | BigInt64Array | Uint16Array;
  if (DataType.isInt(type)) return (row) => values[row];
  if (DataType.isFloat(type))
    return values instanceof Uint16Array ? (row) => fromHalf(values[row]) : (row) => values[row];
  if (DataType.isDate(type) && type.unit === DateUnit.DAY)
    return (row) => new Date(Number(values[row]) * 86_400_000);
  if (DataType.isDate(type) || DataType.isTimestamp(type)) {
    const time = milliseconds(values, DataType.isDate(type) ? 1 : type.unit);
    return (row) => new Date(Math.floor(time(row)));
  }
  if (DataType.isTime(type) || DataType.isDuration(type)) return milliseconds(values, type.unit);
  if (DataType.isDictionary(type)) return entryValues<unknown>(data, null, plainValues);
  const nested = nestedValues(data);
  if (nested !== undefined) return nested;
  const text = valueTexts(type, readableStyle)(data);
  if (DataType.isBool(type)) return (row) => text(row) === 'true';
  return DataType.isDecimal(type) ? (row) => numberOrText(text(row)) : text;
}

/** Bytes, and types whose values consist of others; undefined for other types. */
function nestedValues(data: Data): ((row: number) => unknown) | undefined {
  const { type, children } = data;
  if (isBytes(type)) {
    const bytes = bytesAt(data);
    // A copy, since batches may share their memory.
    return (row) => Uint8Array.from(bytes(row));
  }
  if (isList(type)) {
    const element = plainValues(children[0]);
    return (row) => {
      const [from, to] = elementsAt(data, row);
      return Array.from({ length: to - from }, (_, i) => element(from + i));
    };
  }
  if (DataType.isStruct(type)) return plainRows({ fields: type.children }, children);
  if (DataType.isMap(type)) {
    const [keys, entries] = children[0].children.map(plainValues);
    return (row) => {
      const [from, to] = elementsAt(data, row);
      const object: Record<string, unknown> = {};
      for (let at = from; at < to; at++) setOwn(object, String(keys(at)), entries(at));
      return object;
    };
  }
  if (!DataType.isUnion(type)) return undefined;
  const own = children.map(plainValues);
  return (row) => {
    const { child, at } = unionPlace(data, row);
    return own[child](at);
  };
}

/** Sets an object's own property; assigning to `__proto__` would set the object's prototype. */
function setOwn(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Counts of seconds (unit 0), milliseconds, microseconds or nanoseconds as milliseconds. */
function milliseconds(counts: ArrayLike<number | bigint>, unit: number): (row: number) => number {
  if (unit < 2) return (row) => Number(counts[row]) * (unit === 0 ? 1000 : 1);
  const perMillisecond = unit === 2 ? 1000n : 1_000_000n;
  return (row) => {
    const count = BigInt(counts[row]);
    return Number(count / perMillisecond) + Number(count % perMillisecond) / Number(perMillisecond);
  };
}

/** The number with the digits of a decimal's text; the text if no number has them. */
function numberOrText(text: string): number | string {
  const digits = text.replace(/^-?[0.]*|\.|-/g, '');
  const number = Number(text);
  // Every number of 15 digits is the nearest one to its float64.
  if (digits.length <= 15) return number;
  const [whole, fraction = ''] = text.split('.');
  const shortest = [whole, fraction.replace(/0+$/, '')].filter((part) => part !== '').join('.');
  return String(number) === shortest ? number : text;
}
