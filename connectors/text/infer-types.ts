import { latin1, parseDecimal, parseLongInteger, parseShortInteger } from './parse-numbers.ts';
import { hasLeadingZero } from './read-column.ts';
import type { FieldBlock } from './record-scanner.ts';
import type { TextType } from './text-type.ts';

/** Kinds of fields seen in a column, as bits; those of several blocks or files are or-ed. */
const SEEN = { int32: 1, int64: 2, beyond: 4, decimal: 8, text: 16 } as const;

/** The kinds of fields in a column of the block, rows `from` to `to`. */
export function kindsIn(block: FieldBlock, column: number, from = 0, to = block.rows): number {
  let seen = 0;
  for (let row = from; row < to && seen < SEEN.text; row++) seen |= kindOf(block, row, column);
  return seen;
}

function kindOf({ bytes, starts, ends, columns }: FieldBlock, row: number, column: number): number {
  const start = starts[row * columns + column];
  const end = ends[row * columns + column];
  if (start === end) return 0;
  const short = parseShortInteger(bytes, start, end);
  if (short !== undefined) {
    if (hasLeadingZero(bytes, start, end)) return SEEN.text;
    return short === (short | 0) ? SEEN.int32 : SEEN.int64;
  }
  const long = end - start < 16 ? undefined : parseLongInteger(latin1(bytes, start, end));
  if (long !== undefined) {
    if (hasLeadingZero(bytes, start, end)) return SEEN.text;
    return BigInt.asIntN(64, long) === long ? SEEN.int64 : SEEN.beyond;
  }
  return parseDecimal(bytes, start, end) === undefined ? SEEN.text : SEEN.decimal;
}

export function isNumeric(seen: number): boolean {
  return seen !== 0 && seen < SEEN.text;
}

/**
 * The narrowest type that holds all of the kinds: int32, int64, float64, utf8. Whole numbers with leading zeros are ids and stay
 * text, and so do whole numbers beyond 64 bits unless decimals are beside them; a column of nulls is text too.
 */
export function typeOfKinds(seen: number): TextType {
  if (seen === 0 || seen >= SEEN.text) return 'utf8';
  if (seen >= SEEN.decimal) return 'float64';
  if (seen >= SEEN.beyond) return 'utf8';
  return seen >= SEEN.int64 ? 'int64' : 'int32';
}
