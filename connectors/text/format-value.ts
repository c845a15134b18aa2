import { DataType, Vector } from 'apache-arrow';
import type { Data, TimeUnit, Utf8 } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { decimalAt, decimalText, uuidTexts } from '../../engine/keys/exact-ids.ts';

/** Returns the text of the value in a row that is not null, without quotes. */
type RowText = (row: number) => string;

/**
 * The texts of a column of that type, chunk by chunk. Throws UsageError for types that one field cannot hold.
 */
export function columnTexts(type: DataType, column: string): (data: Data) => RowText {
  if (DataType.isUtf8(type)) return utf8Texts;
  if (DataType.isInt(type)) {
    return ({ values }) =>
      (row) =>
        String((values as Int32Array | BigInt64Array)[row]);
  }
  // Formats the stored number itself: Arrow's vectors return milliseconds, in which finer units lose digits.
  if (DataType.isTimestamp(type))
    return ({ values }) =>
      (row) =>
        formatTimestamp((values as unknown as BigInt64Array)[row], type.unit);
  if (DataType.isDecimal(type))
    return ({ values }) =>
      (row) =>
        decimalText(decimalAt(values as unknown as Uint32Array, row, type.bitWidth / 32), type.scale);
  if (DataType.isFixedSizeBinary(type) && type.byteWidth === 16)
    return ({ values, length }) => textsAt(uuidTexts(values as unknown as Uint8Array, length));
  const format = valueFormat(type, column);
  return (data) => {
    const vector = new Vector([data]);
    return (row) => format(vector.get(row));
  };
}

/** Arrow's own decoder drops a byte order mark at the beginning of a text. */
function utf8Texts(data: Data): RowText {
  const { values, valueOffsets } = data as Data<Utf8>;
  return textsAt({ bytes: values, offsets: valueOffsets });
}

function textsAt({ bytes, offsets }: { readonly bytes: Uint8Array; readonly offsets: Int32Array }): RowText {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return (row) => all.toString('utf8', offsets[row], offsets[row + 1]);
}

function valueFormat(type: DataType, column: string): (value: unknown) => string {
  if (DataType.isBool(type)) return String;
  if (DataType.isFloat(type)) return remembered(type.precision === 2 ? formatDouble : formatSingle);
  if (DataType.isDate(type)) return (value) => new Date(Number(value)).toISOString().slice(0, 10);
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

/** Caches the texts that `format` has made, since ratings have few different values. */
function remembered(format: (value: number) => string): (value: unknown) => string {
  const known = new Map<number, string>();
  return (value) => {
    const number = value as number;
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
function formatTimestamp(count: bigint, unit: TimeUnit): string {
  const digits = 3 * unit;
  const perSecond = 10n ** BigInt(digits);
  const fraction = ((count % perSecond) + perSecond) % perSecond;
  const seconds = new Date(Number((count - fraction) / perSecond) * 1000).toISOString().slice(0, -5);
  return digits === 0 ? `${seconds}Z` : `${seconds}.${String(fraction).padStart(digits, '0')}Z`;
}
