export const PLAIN_NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)? ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?)?$/i;
const MINUTE = 60_000;

/**
 * Parses an ISO 8601 date or date-time, with a time zone or in UTC, to milliseconds since 1970. A plain
 * number is a time since 1970 too, in seconds, milliseconds, microseconds or nanoseconds, depending on its
 * size. Undefined for other texts.
 */
export function timeIn(text: string): number | undefined {
  const trimmed = text.trim();
  if (PLAIN_NUMBER.test(trimmed)) return Number(trimmed) * millisecondsPerUnit(Number(trimmed));
  const match = ISO.exec(trimmed);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const at = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  const isReal =
    at.getUTCMonth() === month - 1 && at.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
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

/**
 * Guesses the unit of a time since 1970 from its size: 1 to 4 for seconds, milli-, micro- and nanoseconds, or
 * 0 if the number is too small for a guess (times before 1973 in seconds).
 */
export function sizeOf(value: number): number {
  const size = Math.abs(value);
  if (!(size >= 1e8)) return 0;
  if (size < 1e11) return 1;
  return size < 1e14 ? 2 : size < 1e17 ? 3 : 4;
}
