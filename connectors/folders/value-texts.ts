import { type Data, DataType, DateUnit, TimeUnit, type Utf8, Vector } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { DAY, dateText } from '../../engine/expressions/civil.ts';
import { decimalAt, decimalText } from '../../engine/keys/exact-ids.ts';
import { shortestFloat32 } from '../../engine/numbers/shortest.ts';

/** Returns the text of the value in a row that is not null. */
type RowText = (row: number) => string;

const MILLISECONDS_OF_DAY = DAY / 1000;

/**
 * Text of values for folder names, as Spark casts values to text; times are in UTC. Throws DataError for
 * types that have no such text.
 */
export function valueTexts(type: DataType, column: string): (data: Data) => RowText {
  if (DataType.isUtf8(type) || DataType.isLargeUtf8(type)) return utf8Texts;
  if (DataType.isDictionary(type) && DataType.isUtf8(type.dictionary))
    return (data) => vectorText(data, String);
  if (DataType.isBool(type)) return (data) => vectorText(data, String);
  if (DataType.isInt(type))
    return ({ values }) =>
      (row) =>
        String((values as Int32Array | BigInt64Array)[row]);
  if (DataType.isFloat(type)) {
    const isDouble = type.precision === 2;
    return (data) =>
      vectorText(data, (value) => javaText(isDouble ? Number(value) : shortestFloat32(Number(value))));
  }
  if (DataType.isDecimal(type))
    return ({ values }) =>
      (row) =>
        decimalText(decimalAt(values as unknown as Uint32Array, row, type.bitWidth / 32), type.scale);
  if (DataType.isDate(type))
    return ({ values }) =>
      (row) => {
        const count = Number((values as Int32Array | BigInt64Array)[row]);
        return dateText(type.unit === DateUnit.DAY ? count : Math.floor(count / MILLISECONDS_OF_DAY));
      };
  if (DataType.isTimestamp(type)) return timeTexts(type.unit, true);
  if (DataType.isTime(type)) return timeTexts(type.unit, false);
  if (DataType.isNull(type)) return () => () => '';
  throw new DataError(`values of type ${String(type)} cannot name folders`, {
    phase: 'write',
    column,
    advice: 'Partition by texts, numbers, dates, times or true and false',
  });
}

/** Decodes text itself, since Arrow's decoder would drop a byte order mark at the beginning of a text. */
function utf8Texts(data: Data): RowText {
  const { values, valueOffsets } = data as Data<Utf8>;
  const all = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return (row) => all.toString('utf8', Number(valueOffsets[row]), Number(valueOffsets[row + 1]));
}

function vectorText(data: Data, text: (value: unknown) => string): RowText {
  const vector = new Vector([data]);
  return (row) => text(vector.get(row));
}

/** Text of a double as Java writes it: 0.1, 100.0, 1.0E7, NaN, Infinity. */
export function javaText(value: number): string {
  // -0 and 0 are equal, so their rows must have the same folder.
  if (value === 0) return '0.0';
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return String(value);
  if (size >= 1e-3 && size < 1e7) return Number.isInteger(value) ? `${value}.0` : String(value);
  const [digits, exponent] = value.toExponential().split('e');
  return `${digits.includes('.') ? digits : `${digits}.0`}E${Number(exponent)}`;
}

/** `2024-01-31 12:30:00.25`, or the time alone. The fraction has no trailing zeros. */
function timeTexts(unit: TimeUnit, hasDate: boolean): (data: Data) => RowText {
  const digits = 3 * unit;
  const perSecond = 10n ** BigInt(digits);
  return ({ values }) =>
    (row) => {
      const count = BigInt((values as unknown as BigInt64Array | Int32Array)[row]);
      const fraction = ((count % perSecond) + perSecond) % perSecond;
      const seconds = Number((count - fraction) / perSecond);
      const day = Math.floor(seconds / 86_400);
      const text = clockText(seconds - day * 86_400);
      const rest = String(fraction).padStart(digits, '0').replace(/0+$/, '');
      return `${hasDate ? `${dateText(day)} ` : ''}${text}${rest === '' ? '' : `.${rest}`}`;
    };
}

function clockText(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`;
}
