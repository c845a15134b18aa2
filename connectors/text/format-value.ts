import { DataType } from 'apache-arrow';
import type { TimeUnit } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';

/** Gives the text of one value that is not null, before quotes; a timestamp's value is its stored count. */
export type ValueFormat = (value: unknown) => string;

/** The format of a column's values. Throws UsageError for types that one field cannot hold. */
export function valueFormat(type: DataType, column: string): ValueFormat {
  if (DataType.isInt(type) || DataType.isBool(type)) return String;
  if (DataType.isUtf8(type)) return (value) => value as string;
  if (DataType.isFloat(type)) return remembered(type.precision === 2 ? formatDouble : formatSingle);
  if (DataType.isDate(type)) return (value) => new Date(Number(value)).toISOString().slice(0, 10);
  if (DataType.isTimestamp(type)) return (value) => formatTimestamp(value as bigint, type.unit);
  throw new UsageError(`a text file cannot hold ${String(type)}`, { phase: 'write', column, advice: 'Write Parquet or Arrow instead' });
}

/** The shortest text that is this double, always with a point or an exponent, so that it stays a float. */
export function formatDouble(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text;
}

/** The shortest text that is this float32: 0.1, not 0.10000000149011612. */
export function formatSingle(value: number): string {
  if (!Number.isFinite(value) || String(value).length <= 7) return formatDouble(value);
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return formatDouble(short);
  }
  return formatDouble(Number(value.toPrecision(9)));
}

/** The format with a memory of its texts, since ratings have few different values. */
function remembered(format: (value: number) => string): ValueFormat {
  const known = new Map<number, string>();
  return (value) => {
    const number = value as number;
    // A Map does not tell -0 from 0.
    if (number === 0) return format(number);
    let text = known.get(number);
    if (text === undefined) {
      text = format(number);
      if (known.size < 4096) known.set(number, text);
    }
    return text;
  };
}

/**
 * ISO 8601 in UTC with the digits of the unit: none, 3, 6 or 9. It takes the stored count, because finer units lose digits in the
 * milliseconds of Arrow's vectors. Throws RangeError for years that Date cannot hold.
 */
function formatTimestamp(count: bigint, unit: TimeUnit): string {
  const digits = 3 * unit;
  const perSecond = 10n ** BigInt(digits);
  const fraction = ((count % perSecond) + perSecond) % perSecond;
  const seconds = new Date(Number((count - fraction) / perSecond) * 1000).toISOString().slice(0, -5);
  return digits === 0 ? `${seconds}Z` : `${seconds}.${String(fraction).padStart(digits, '0')}Z`;
}
