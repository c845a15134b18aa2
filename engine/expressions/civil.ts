/**
 * Days since 1970 and dates of the Gregorian calendar (proleptic). No objects: a date is packed as 512 y + 32
 * m + d.
 */
export const DAY = 86_400_000_000;

/** Howard Hinnant, chrono-compatible low-level date algorithms. */
export function daysOf(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const ofEra = y - era * 400;
  const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return era * 146_097 + ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear - 719_468;
}

export function dateOf(days: number): number {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const day = shifted - era * 146_097;
  const year = Math.floor(
    (day - Math.floor(day / 1460) + Math.floor(day / 36_524) - Math.floor(day / 146_096)) / 365,
  );
  const ofYear = day - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const month = Math.floor((5 * ofYear + 2) / 153);
  const own = month < 10 ? month + 3 : month - 9;
  const dayOfMonth = ofYear - Math.floor((153 * month + 2) / 5) + 1;
  return (year + era * 400 + (own <= 2 ? 1 : 0)) * 512 + own * 32 + dayOfMonth;
}

export const yearOf = (date: number): number => Math.floor(date / 512);
export const monthOf = (date: number): number => (date & 511) >> 5;
export const dayOf = (date: number): number => date & 31;

const iso =
  /^\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:\s*(Z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?))?)?\s*$/i;

/**
 * Parses an ISO text (a date, or a date and time, with a zone or in UTC) to microseconds since 1970.
 * Undefined for other texts. `toUtc`: seconds to add to a time without a zone, given in seconds since 1970.
 */
export function parseTimestamp(text: string, toUtc?: (local: number) => number): bigint | undefined {
  const match = iso.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const days = daysOf(year, month, day);
  const date = dateOf(days);
  if (monthOf(date) !== month || dayOf(date) !== day) return undefined;
  const fraction = Number((match[7] ?? '').padEnd(6, '0').slice(0, 6));
  const seconds = (hour * 60 + minute) * 60 + second;
  const shift = match[8] === undefined ? (toUtc?.(days * 86_400 + seconds) ?? 0) : -offsetOf(match[8]);
  return BigInt(days) * BigInt(DAY) + BigInt((seconds + shift) * 1e6 + fraction);
}

/** Seconds east of UTC. */
function offsetOf(zone: string): number {
  if (/^z$/i.test(zone)) return 0;
  const [hours, minutes, seconds] = zone
    .slice(1)
    .replaceAll(':', '')
    .padEnd(6, '0')
    .match(/../g)!
    .map(Number);
  const offset = (hours * 60 + minutes) * 60 + seconds;
  return zone.startsWith('-') ? -offset : offset;
}

/** `-08`, `+05:30`, as DuckDB writes offsets of UTC. */
export function offsetText(seconds: number): string {
  const [size, sign] = [Math.abs(seconds), seconds < 0 ? '-' : '+'];
  const parts = clockText(size).split(':');
  while (parts.length > 1 && parts[parts.length - 1] === '00') parts.pop();
  return `${sign}${parts.join(':')}`;
}

export function dateText(days: number): string {
  const date = dateOf(days);
  const year = yearOf(date);
  const digits = String(Math.abs(year)).padStart(4, '0');
  const two = (value: number) => String(value).padStart(2, '0');
  return `${year < 0 ? '-' : ''}${digits}-${two(monthOf(date))}-${two(dayOf(date))}`;
}

/** `2024-01-31 12:30:00.25`: trailing zeros of the fraction are left out. */
export function timestampText(days: number, micros: number): string {
  const seconds = Math.floor(micros / 1e6);
  const fraction = String(micros - seconds * 1e6)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${dateText(days)} ${clockText(seconds)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** `12:30:00` of the seconds of a day. */
export function clockText(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const ofDay = seconds - Math.floor(seconds / 86_400) * 86_400;
  return `${two(ofDay / 3600)}:${two((ofDay / 60) % 60)}:${two(ofDay % 60)}`;
}
