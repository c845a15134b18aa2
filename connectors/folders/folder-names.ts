import { type Data, DataType } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { shortestFloat32 } from '../../engine/numbers/half.ts';
import {
  dateAndTime,
  isUuid,
  type RowText,
  type TextStyle,
  valueTexts,
} from '../../engine/values/value-texts.ts';
import { decodedText } from '../files/path-kinds.ts';

/** Hive's and Spark's folder name of null. */
export const NULL_VALUE = '__HIVE_DEFAULT_PARTITION__';

/**
 * Characters that cannot be in a folder's name: ASCII characters that Spark and Hive write as % and two
 * hexadecimal digits, and NUL.
 */
// oxlint-disable-next-line no-control-regex
const ESCAPED = /[\0-\x1f"#%'*/:=?\\\x7f{[\]^]/g;

/** Folder name of a value: `genre=Sci-Fi%2FHorror`. Null and the empty text have the same folder. */
export function folderName(column: string, value: string | null): string {
  return `${escapedName(column)}=${escapedValue(value)}`;
}

/**
 * The column's name, escaped. A dot at its beginning is escaped, too, since readers skip folders that start
 * with a dot.
 */
function escapedName(column: string): string {
  return escaped(column).replace(/^\./, '%2E');
}

function escapedValue(value: string | null): string {
  if (value === null || value === '') return NULL_VALUE;
  return value === NULL_VALUE ? value.replace('_', '%5F') : escaped(value);
}

function escaped(text: string): string {
  return text.replace(
    ESCAPED,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}

/** Column and value from a folder's name; undefined for other folders. */
export function readFolderName(
  folder: string,
): { readonly column: string; readonly value: string | null } | undefined {
  const at = folder.indexOf('=');
  if (at <= 0) return undefined;
  const value = folder.slice(at + 1);
  return {
    column: decodedText(folder.slice(0, at)),
    value: value === NULL_VALUE ? null : decodedText(value),
  };
}

/** As Spark casts values to text; times are in UTC. */
const sparkStyle: TextStyle = {
  float: (value, isDouble) => javaText(isDouble ? value : shortestFloat32(value)),
  timestamp: (count, { unit }) => dateAndTime(count, 3 * unit),
};

/** Text of values for names of folders. Throws DataError for types that have no such text. */
export function folderTexts(type: DataType, column: string): (data: Data) => RowText {
  if (DataType.isNull(type)) return () => () => '';
  if (namesFolders(type)) return valueTexts(type, sparkStyle);
  throw new DataError(`values of type ${String(type)} cannot name folders`, {
    phase: 'write',
    column,
    advice: 'Partition by texts, numbers, dates, times or true and false',
  });
}

function namesFolders(type: DataType): boolean {
  if (DataType.isDictionary(type)) return DataType.isUtf8(type.dictionary);
  const { isUtf8, isLargeUtf8, isBool, isInt, isFloat, isDecimal, isDate, isTimestamp, isTime } = DataType;
  const named = [isUtf8, isLargeUtf8, isBool, isInt, isFloat, isDecimal, isDate, isTimestamp, isTime, isUuid];
  return named.some((is) => is(type));
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
