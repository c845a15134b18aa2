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
