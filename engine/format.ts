/** Text forms of numbers, the same in plans, messages and tables. */

export function formatCount(count: number): string {
  // toLocaleString would load the tables of all languages: 8 ms at each start.
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "1 row", "2 rows", "90,012 row groups": the plural is the noun with an s. */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${Math.round(count) === 1 ? '' : 's'}`;
}

/** Bytes in binary units: "1.5 MiB". */
export function formatBytes(bytes: number): string {
  return scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
}

/** Floating-point operations: "74.9 GFLOP". */
export function formatFlops(flops: number): string {
  return scaled(flops, 1000, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP']);
}

/** The value in the largest unit in which it is at least 1; without decimals in the smallest unit. */
function scaled(value: number, step: number, units: readonly string[]): string {
  let unit = 0;
  let rest = value;
  while (rest >= step && unit < units.length - 1) {
    rest /= step;
    unit++;
  }
  return `${rest.toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
}

export function formatMilliseconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}

/**
 * Replaces by U+FFFD the control characters other than newline and tab, which terminals act on and HTML does
 * not allow, and the characters that change the direction of text.
 */
export function withoutControls(text: string): string {
  return text.replaceAll(/(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '\ufffd');
}

/** A message as one line, so that a value in it cannot imitate the next message. */
export function onOneLine(text: string): string {
  return withoutControls(text.replaceAll(/[\r\n]+/g, ' '));
}

const LONGEST = 200;

/** A short text for a value in a message: its type if it has no short text. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  const { name } = (value as { readonly constructor?: { readonly name?: unknown } }).constructor ?? Object;
  return typeof name !== 'string' || name === 'Object' || name === ''
    ? 'an object'
    : `an object of class ${name}`;
}
