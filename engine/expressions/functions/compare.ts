import { type ValueType, isInteger } from '../types.ts';
import {
  isAbove,
  isBelow,
  isEqual,
  isOneOf,
  literalBytes,
  MOST_PARTS,
  storedTexts,
  testedBytes,
} from '../utf8.ts';
import {
  bigsOf,
  halvesOf,
  maskOf,
  numbersOf,
  textsOf,
  type TextValues,
  type Values,
  validOfAll,
  wideOf,
} from '../values.ts';
import {
  boolResult,
  commonType,
  type Argument,
  type Functions,
  type FunctionSpec,
  type Rows,
  type Signature,
} from './function.ts';

/** Comparisons in SQL's order of values: NaN equals NaN and is above all numbers, as in Spark and DuckDB. */
export const comparisons: Functions = {
  '=': compared('x = y', equal),
  '!=': compared('x != y', (a, b, length) => inverted(equal(a, b, length))),
  '<': compared('x < y', less),
  '>': compared('x > y', (a, b, length) => less(b, a, length)),
  '<=': compared('x <= y', (a, b, length) => inverted(less(b, a, length))),
  '>=': compared('x >= y', (a, b, length) => inverted(less(a, b, length))),
  '<=>': { takes: 'x <=> y', sign: comparable, seesNulls: true, kernel: nullSafeEqual },
  in: { takes: 'x in (constants)', sign: comparableWithConstants, seesNulls: true, kernel: isIn },
};

function compared(
  takes: string,
  test: (left: Values, right: Values, length: number) => Uint8Array,
): FunctionSpec {
  return {
    takes,
    sign: comparable,
    kernel: ([left, right], rows) => boolResult(rows, test(left, right, rows.length)),
  };
}

function comparable(args: readonly Argument[]): Signature | undefined {
  const type = args.length === 2 ? comparedType(args) : undefined;
  if (type === undefined) return undefined;
  // Integers of different widths are compared without conversion: no type holds all of int64 and uint64.
  const asTheyAre = args.every((argument) => isInteger(argument.type));
  return { args: args.map((argument) => (asTheyAre ? argument.type : type)), result: 'bool' };
}

function comparedType(args: readonly Argument[]): ValueType | undefined {
  const type = commonType(args, Infinity);
  return type === 'other' ? undefined : type;
}

function comparableWithConstants(args: readonly Argument[]): Signature | undefined {
  const type =
    args.length > 1 && args.slice(1).every(({ constant }) => constant) ? comparedType(args) : undefined;
  return type && { args: args.map(() => type), result: 'bool' };
}

/** Inverts bytes of 0 and 1 in place. */
export function inverted(bytes: Uint8Array): Uint8Array {
  for (let i = 0; i < bytes.length; i++) bytes[i] ^= 1;
  return bytes;
}

function equal(left: Values, right: Values, length: number): Uint8Array {
  const stored = testedBytes(isEqual, left, right, length) ?? testedBytes(isEqual, right, left, length);
  if (stored !== undefined) return stored;
  const out = new Uint8Array(length);
  const [maskA, maskB] = [maskOf(left), maskOf(right)];
  if (left.form === 'text' || right.form === 'text') {
    const [a, b] = [textsOf(left), textsOf(right)];
    for (let i = 0; i < length; i++) out[i] = a[i & maskA] === b[i & maskB] ? 1 : 0;
  } else if (left.form === 'big' || right.form === 'big') {
    const [a, b] = [bigsOf(left), bigsOf(right)];
    for (let i = 0; i < length; i++) out[i] = a[i & maskA] === b[i & maskB] ? 1 : 0;
  } else if (left.form === 'wide' || right.form === 'wide') {
    const { low: lowA, high: highA } = halvesOf(wideOf(left));
    const { low: lowB, high: highB } = halvesOf(wideOf(right));
    for (let i = 0; i < length; i++) {
      const x = 2 * (i & maskA);
      const y = 2 * (i & maskB);
      out[i] = Number(lowA[x] === lowB[y]) & Number(highA[x + 1] === highB[y + 1]);
    }
  } else {
    const [a, b] = [numbersOf(left), numbersOf(right)];
    for (let i = 0; i < length; i++) {
      const x = a[i & maskA];
      const y = b[i & maskB];
      out[i] = Number(x === y) | (Number(x !== x) & Number(y !== y));
    }
  }
  return out;
}

/** 1 for rows in which the left value is less than the right one. */
export function less(left: Values, right: Values, length: number): Uint8Array {
  const stored = testedBytes(isBelow, left, right, length) ?? testedBytes(isAbove, right, left, length);
  if (stored !== undefined) return stored;
  const out = new Uint8Array(length);
  const [maskA, maskB] = [maskOf(left), maskOf(right)];
  if (left.form === 'text' || right.form === 'text') {
    const [a, b] = [textsOf(left), textsOf(right)];
    for (let i = 0; i < length; i++) out[i] = isBefore(a[i & maskA], b[i & maskB]) ? 1 : 0;
  } else if (left.form === 'big' || right.form === 'big') {
    const [a, b] = [bigsOf(left), bigsOf(right)];
    for (let i = 0; i < length; i++) out[i] = a[i & maskA] < b[i & maskB] ? 1 : 0;
  } else if (left.form === 'wide' || right.form === 'wide') {
    const { low: lowA, high: highA } = halvesOf(wideOf(left));
    const { low: lowB, high: highB } = halvesOf(wideOf(right));
    for (let i = 0; i < length; i++) {
      const x = 2 * (i & maskA);
      const y = 2 * (i & maskB);
      const same = Number(highA[x + 1] === highB[y + 1]);
      out[i] = Number(highA[x + 1] < highB[y + 1]) | (same & Number(lowA[x] < lowB[y]));
    }
  } else {
    const [a, b] = [numbersOf(left), numbersOf(right)];
    for (let i = 0; i < length; i++) {
      const x = a[i & maskA];
      const y = b[i & maskB];
      // Not `x < y`, which is false for NaN.
      out[i] = (Number(x >= y) ^ 1) & Number(x === x);
    }
  }
  return out;
}

/**
 * True if a text is before another in the order of UTF-8's bytes, which is the order of code points. The
 * order of UTF-16 differs above U+D800.
 */
function isBefore(left: string, right: string): boolean {
  const length = Math.min(left.length, right.length);
  let i = 0;
  while (i < length && left.charCodeAt(i) === right.charCodeAt(i)) i++;
  if (i === length) return left.length < right.length;
  const [a, b] = [left.charCodeAt(i), right.charCodeAt(i)];
  const isPair = (unit: number) => unit >= 0xd800 && unit < 0xe000;
  return isPair(a) === isPair(b) ? a < b : isPair(b);
}

function nullSafeEqual([left, right]: readonly Values[], rows: Rows): Values {
  const out = equal(left, right, rows.length);
  const [maskA, maskB] = [maskOf(left), maskOf(right)];
  if (left.valid !== undefined || right.valid !== undefined) {
    for (let i = 0; i < out.length; i++) {
      const a = left.valid === undefined ? 1 : left.valid[i & maskA];
      const b = right.valid === undefined ? 1 : right.valid[i & maskB];
      if ((a & b) === 0) out[i] = a === b ? 1 : 0;
    }
  }
  return boolResult(rows, out);
}

/** As `x = a or x = b or ...`: without a match, a null in the list gives null. */
function isIn([column, ...list]: readonly Values[], rows: Rows): Values {
  const out = new Uint8Array(rows.length);
  const given = list.filter((one) => one.valid?.[0] !== 0);
  const mask = maskOf(column);
  const valid = validOfAll([column], rows.length);
  if (column.form === 'text') isInTexts(column, given, out);
  else if ([column, ...given].some(({ form }) => form === 'wide' || form === 'big')) {
    const masks = given.map((one) => equal(column, one, rows.length));
    for (const bytes of masks) for (let i = 0; i < out.length; i++) out[i] |= bytes[i];
  } else {
    const set = new Set(given.map((one) => numbersOf(one)[0]));
    const numbers = numbersOf(column);
    for (let i = 0; i < out.length; i++) out[i] = set.has(numbers[i & mask]) ? 1 : 0;
  }
  return boolResult(rows, out, given.length === list.length ? valid : knownIn(out, valid));
}

function isInTexts(column: TextValues, given: readonly Values[], out: Uint8Array): void {
  const stored = storedTexts(column);
  const parts = stored && given.length <= MOST_PARTS ? given.map(literalBytes) : [undefined];
  const known = parts.filter((part) => part !== undefined);
  if (stored !== undefined && known.length === given.length) {
    isOneOf(stored, known, out);
    return;
  }
  const { values, codes } = column;
  const set = new Set(given.map((one) => textsOf(one)[0]));
  const isIn = Uint8Array.from(values, (text) => (set.has(text) ? 1 : 0));
  const mask = maskOf(column);
  if (codes === undefined) for (let i = 0; i < out.length; i++) out[i] = isIn[i & mask];
  else for (let i = 0; i < out.length; i++) out[i] = isIn[codes[i & mask]];
}

/** Valid rows of `in` if the list contains a null: only the rows that match one of its other values. */
function knownIn(out: Uint8Array, valid: Uint8Array | undefined): Uint8Array {
  return valid === undefined ? out.slice() : valid.map((byte, i) => byte & out[i]);
}
