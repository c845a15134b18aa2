import type { Values, Utf8Texts } from './values.ts';

const encoder = new TextEncoder();

/**
 * The bytes of a constant text; undefined for other values, and for a text with lone surrogates, which UTF-8
 * cannot encode.
 */
export function literalBytes(column: Values): Uint8Array | undefined {
  if (column.form !== 'text' || !column.constant) return undefined;
  const [text] = column.values;
  // Half of a surrogate pair would be encoded as another character.
  return /\p{Surrogate}/u.test(text) ? undefined : encoder.encode(text);
}

/** The stored bytes of a text column; undefined for other values. */
export function storedTexts(column: Values): Utf8Texts | undefined {
  return column.form === 'text' && !column.constant && column.codes === undefined ? column.utf8 : undefined;
}

/** Compares texts with a constant: writes 1 for each row for which the test is true, else 0. */
export type Utf8Test = (texts: Utf8Texts, part: Uint8Array, out: Uint8Array) => void;

export const isEqual: Utf8Test = ({ offsets, bytes }, part, out) => {
  for (let i = 0; i < out.length; i++) {
    const start = offsets[i];
    out[i] = offsets[i + 1] - start === part.length && hasAt(bytes, start, part) ? 1 : 0;
  }
};

export const startsWith: Utf8Test = ({ offsets, bytes }, part, out) => {
  for (let i = 0; i < out.length; i++) {
    const start = offsets[i];
    out[i] = offsets[i + 1] - start >= part.length && hasAt(bytes, start, part) ? 1 : 0;
  }
};

export const endsWith: Utf8Test = ({ offsets, bytes }, part, out) => {
  for (let i = 0; i < out.length; i++) {
    const start = offsets[i + 1] - part.length;
    out[i] = start >= offsets[i] && hasAt(bytes, start, part) ? 1 : 0;
  }
};

export const contains: Utf8Test = ({ offsets, bytes }, part, out) => {
  const [first] = part;
  if (part.length === 0) out.fill(1);
  else
    for (let i = 0; i < out.length; i++) {
      const last = offsets[i + 1] - part.length;
      let at = offsets[i];
      while (at <= last && (bytes[at] !== first || !hasAt(bytes, at, part))) at++;
      out[i] = at <= last ? 1 : 0;
    }
};

/** Texts less than the constant. UTF-8 bytes sort in code point order. */
export const isBelow: Utf8Test = (texts, part, out) => {
  for (let i = 0; i < out.length; i++) out[i] = order(texts, i, part) < 0 ? 1 : 0;
};

export const isAbove: Utf8Test = (texts, part, out) => {
  for (let i = 0; i < out.length; i++) out[i] = order(texts, i, part) > 0 ? 1 : 0;
};

/** Most constants for `isOneOf`, which compares a text with each constant of the same length. */
export const MOST_PARTS = 16;

/** Tests for texts equal to one of a few constants. */
export function isOneOf({ offsets, bytes }: Utf8Texts, parts: readonly Uint8Array[], out: Uint8Array): void {
  for (let i = 0; i < out.length; i++) {
    const start = offsets[i];
    const length = offsets[i + 1] - start;
    let found = 0;
    for (let k = 0; k < parts.length && found === 0; k++)
      if (parts[k].length === length && hasAt(bytes, start, parts[k])) found = 1;
    out[i] = found;
  }
}

function hasAt(bytes: Uint8Array, start: number, part: Uint8Array): boolean {
  for (let k = 0; k < part.length; k++) if (bytes[start + k] !== part[k]) return false;
  return true;
}

/** Negative if text i is less than the constant, 0 if equal. */
function order({ offsets, bytes }: Utf8Texts, i: number, part: Uint8Array): number {
  const start = offsets[i];
  const length = offsets[i + 1] - start;
  const common = Math.min(length, part.length);
  for (let k = 0; k < common; k++) {
    const difference = bytes[start + k] - part[k];
    if (difference !== 0) return difference;
  }
  return length - part.length;
}

/**
 * Applies a test against a constant to the stored UTF-8 bytes of a column. Undefined if the column is not
 * stored as UTF-8, or the constant cannot be encoded.
 */
export function testedBytes(
  test: Utf8Test,
  column: Values,
  constant: Values,
  length: number,
): Uint8Array | undefined {
  const texts = storedTexts(column);
  const part = texts && literalBytes(constant);
  if (texts === undefined || part === undefined) return undefined;
  const out = new Uint8Array(length);
  test(texts, part, out);
  return out;
}
