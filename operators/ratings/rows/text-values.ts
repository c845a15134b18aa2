import { type Data, DataType, Vector } from 'apache-arrow';

/** Called for a row whose text gives no value. */
export type OnRefusedText = (row: number, reason: string) => void;

/** True for text, also as a dictionary. */
export function isText(type: DataType): boolean {
  const of: DataType = DataType.isDictionary(type) ? type.dictionary : type;
  return DataType.isUtf8(of) || DataType.isLargeUtf8(of);
}

/** The numbers of a column of text or booleans, where true is 1 and false 0; NaN at nulls and at values that go to `onRefused`. */
export function numbersOfTexts(data: Data, onRefused: OnRefusedText = () => {}): Float64Array {
  return valuesOf(data, numberIn, 'is not a number', onRefused);
}

/** The times of a column of text, in milliseconds since 1970; see timeIn. NaN at nulls and at texts that go to `onRefused`. */
export function timesOfTexts(data: Data, onRefused: OnRefusedText = () => {}): Float64Array {
  return valuesOf(data, timeIn, 'is not a time such as 2024-05-31 or 2024-05-31T12:00:00Z', onRefused);
}

function valuesOf(data: Data, read: (text: string) => number | undefined, problem: string, onRefused: OnRefusedText): Float64Array {
  const vector = new Vector([data]);
  const values = new Float64Array(data.length).fill(Number.NaN);
  for (let row = 0; row < values.length; row++) {
    const value: unknown = vector.get(row);
    if (value === null) continue;
    const number = read(String(value));
    if (number === undefined) onRefused(row, `"${shortened(String(value))}" ${problem}`);
    else values[row] = number;
  }
  return values;
}

function shortened(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function numberIn(text: string): number | undefined {
  const trimmed = text.trim();
  if (NUMBER.test(trimmed)) return Number(trimmed);
  const truth = trimmed.toLowerCase();
  return truth === 'true' ? 1 : truth === 'false' ? 0 : undefined;
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)? ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?)?$/i;
const MINUTE = 60_000;

/**
 * ISO 8601 dates and date-times, with a zone or in UTC, to the digits of a second that a float64 of milliseconds holds. Digits alone are
 * seconds, milliseconds, microseconds or nanoseconds by their size, so that all of a column have one unit.
 */
export function timeIn(text: string): number | undefined {
  const trimmed = text.trim();
  if (NUMBER.test(trimmed)) return Number(trimmed) * millisecondsPerUnit(Number(trimmed));
  const match = ISO.exec(trimmed);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const at = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  const isReal = at.getUTCMonth() === month - 1 && at.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  if (!isReal) return undefined;
  return at.setUTCFullYear(year) + Number(`0.${match[7] ?? 0}`) * 1000 - zoneMinutes(match[8]) * MINUTE;
}

function zoneMinutes(zone = 'Z'): number {
  if (!/^[+-]/.test(zone)) return 0;
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0');
  const minutes = 60 * Number(digits.slice(0, 2)) + Number(digits.slice(2));
  return zone.startsWith('-') ? -minutes : minutes;
}

function millisecondsPerUnit(value: number): number {
  return [1, 1000, 1, 1e-3, 1e-6][sizeOf(value)];
}

/** The unit that a time since 1970 has by its size: 0 for one too small to say (before 1973 in seconds), then seconds, milli-, micro- and nanoseconds. */
export function sizeOf(value: number): number {
  const size = Math.abs(value);
  if (!(size >= 1e8)) return 0;
  if (size < 1e11) return 1;
  return size < 1e14 ? 2 : size < 1e17 ? 3 : 4;
}
