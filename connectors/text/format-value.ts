import { DataType, type Data, type Timestamp } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { isUuid, type RowText, splitSeconds, valueTexts } from '../../engine/values/value-texts.ts';

/**
 * The texts of a column of that type, without quotes, chunk by chunk. Throws UsageError for types that one
 * field cannot hold.
 */
export function columnTexts(type: DataType, column: string): (data: Data) => RowText {
  const { isUtf8, isInt, isFloat, isBool, isDecimal, isDate, isTimestamp, isTime } = DataType;
  const held = [isUtf8, isInt, isFloat, isBool, isDecimal, isDate, isTimestamp, isTime, isUuid];
  if (DataType.isNull(type)) return () => () => '';
  if (held.some((is) => is(type))) return valueTexts(type, { float: remembered(type), timestamp: isoText });
  throw new UsageError(`a text file cannot hold ${String(type)}`, {
    phase: 'write',
    column,
    advice: 'Write Parquet or Arrow instead',
  });
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

/** Formats floats and caches their texts, since ratings have few different values. */
function remembered(type: DataType): (value: number) => string {
  const format = DataType.isFloat(type) && type.precision === 2 ? formatDouble : formatSingle;
  const known = new Map<number, string>();
  return (number) => {
    // A Map treats -0 and 0 as the same key.
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
 * ISO 8601 in UTC with the digits of the unit: none, 3, 6 or 9. Throws RangeError for years that Date cannot
 * hold.
 */
function isoText(count: bigint, { unit }: Timestamp): string {
  const { seconds, fraction } = splitSeconds(count, 3 * unit);
  const text = new Date(seconds * 1000).toISOString().slice(0, -5);
  return fraction === '' ? `${text}Z` : `${text}.${fraction}Z`;
}
