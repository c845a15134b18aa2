import * as utf8 from '../utf8.ts';
import { maskOf, numbersOf, textsOf, type TextValues, type Values } from '../values.ts';
import {
  type Argument,
  boolResult,
  exactly,
  type Functions,
  type FunctionSpec,
  type Kernel,
  numberResult,
  type Rows,
  textResult,
} from './function.ts';
import { compiled } from './matches.ts';

const text = 'utf8';
const one = exactly([text], text);
const tests = exactly([text, text], 'bool');

/** Texts count in code points, from 1, as in Spark and DuckDB. */
export const texts: Functions = {
  lower: { takes: '(text)', sign: one, kernel: mapped((value) => value.toLowerCase()) },
  upper: { takes: '(text)', sign: one, kernel: mapped((value) => value.toUpperCase()) },
  trim: { takes: '(text)', sign: one, kernel: mapped(withoutSpaces) },
  length: {
    takes: '(text)',
    sign: exactly([text], 'int64'),
    kernel: ([a], rows) => numberResult(rows, Float64Array.from(textsOf(a), lengthOf)),
  },
  concat: { takes: '(text, ...)', sign: manyTexts, kernel: concat },
  substring: {
    takes: '(text, start, length)',
    sign: exactly([text, 'int64', 'int64?'], text),
    kernel: substring,
  },
  replace: { takes: '(text, search, replacement)', sign: exactly([text, text, text], text), kernel: replace },
  contains: {
    takes: '(text, part)',
    sign: tests,
    kernel: tested((value, part) => value.includes(part), utf8.contains),
  },
  startsWith: {
    takes: '(text, start)',
    sign: tests,
    kernel: tested((value, part) => value.startsWith(part), utf8.startsWith),
  },
  endsWith: {
    takes: '(text, end)',
    sign: tests,
    kernel: tested((value, part) => value.endsWith(part), utf8.endsWith),
  },
  like: { takes: "text like 'constant'", sign: constantPattern(likeTest), kernel: like },
  rlike: { takes: "text ~ 'constant'", sign: constantPattern(regexTest), kernel: matched(regexTest) },
};

function manyTexts(args: readonly Argument[]) {
  return args.length === 0
    ? undefined
    : exactly(
        args.map(() => text),
        text,
      )(args);
}

function mapped(map: (value: string) => string): Kernel {
  return ([a], rows) => textResult(rows, Array.from(textsOf(a), map));
}

function tested(test: (value: string, part: string) => boolean, ofBytes: utf8.Utf8Test): Kernel {
  return ([a, b], rows) => {
    const stored = utf8.testedBytes(ofBytes, a, b, rows.length);
    if (stored !== undefined) return boolResult(rows, stored);
    const [values, parts, maskA, maskB] = [textsOf(a), textsOf(b), maskOf(a), maskOf(b)];
    const out = new Uint8Array(rows.length);
    for (let i = 0; i < out.length; i++) out[i] = test(values[i & maskA], parts[i & maskB]) ? 1 : 0;
    return boolResult(rows, out);
  };
}

/** A loop, since / +$/ takes quadratic time on a text with many spaces. */
function withoutSpaces(value: string): string {
  let [start, end] = [0, value.length];
  while (value[start] === ' ') start++;
  while (end > start && value[end - 1] === ' ') end--;
  return value.slice(start, end);
}

function lengthOf(value: string): number {
  let length = value.length;
  for (let i = 0; i < value.length; i++) if ((value.charCodeAt(i) & 0xfc00) === 0xdc00) length--;
  return length;
}

const columnsOf = (args: readonly Values[]) => args.map((a) => ({ values: textsOf(a), mask: maskOf(a) }));

function concat(args: readonly Values[], rows: Rows): Values {
  const columns = columnsOf(args);
  const row = (_: unknown, i: number) =>
    columns.reduce((joined, { values, mask }) => joined + values[i & mask], '');
  return textResult(rows, Array.from({ length: rows.length }, row));
}

function replace(args: readonly Values[], rows: Rows): Values {
  const [from, search, by] = columnsOf(args);
  const row = (_: unknown, i: number) => {
    const wanted = search.values[i & search.mask];
    const value = from.values[i & from.mask];
    return wanted === '' ? value : value.replaceAll(wanted, () => by.values[i & by.mask]);
  };
  return textResult(rows, Array.from({ length: rows.length }, row));
}

/** Starts below 1 count from the end, 0 is as 1, as in Spark. */
function substring([a, from, count]: readonly Values[], rows: Rows): Values {
  const [values, starts, lengths] = [textsOf(a), numbersOf(from), count && numbersOf(count)];
  const row = (_: unknown, i: number) => {
    const points = Array.from(values[i & maskOf(a)]);
    const given = starts[i & maskOf(from)];
    const start = given > 0 ? given - 1 : given < 0 ? points.length + given : 0;
    const end = count && lengths ? start + lengths[i & maskOf(count)] : points.length;
    return points.slice(Math.max(0, start), Math.max(0, end)).join('');
  };
  return textResult(rows, Array.from({ length: rows.length }, row));
}

const matchedLike = matched(likeTest);

/** A constant pattern without `%`, or with `%` only at its ends, is matched by comparing bytes. */
function like([a, pattern]: readonly Values[], rows: Rows): Values {
  const text = pattern.form === 'text' ? pattern.values[0] : '_';
  const [, start, part, end] = /^(%*)([^%_\\]*)(%*)$/.exec(text) ?? [];
  if (part === undefined || (part === '' && text !== '')) return matchedLike([a, pattern], rows);
  const test = start ? (end ? utf8.contains : utf8.endsWith) : end ? utf8.startsWith : utf8.isEqual;
  const constant = { ...(pattern as TextValues), values: [part] };
  const stored = utf8.testedBytes(test, a, constant, rows.length);
  return stored === undefined ? matchedLike([a, pattern], rows) : boolResult(rows, stored);
}

function regexTest(pattern: string): TextTest {
  const regex = compiled(pattern);
  return (value) => regex.test(value);
}

type TextTest = (value: string) => boolean;

function constantPattern(compile: (pattern: string) => TextTest): FunctionSpec['sign'] {
  return (args) => {
    const pattern = args[1]?.constant;
    if (pattern?.form === 'text') compile(pattern.values[0]);
    else if (pattern === undefined || pattern.form !== 'opaque') return undefined;
    return tests(args);
  };
}

function matched(compile: (pattern: string) => TextTest): Kernel {
  return ([a, pattern], rows) => {
    const [values, test] = [textsOf(a), compile(textsOf(pattern)[0])];
    const out = new Uint8Array(rows.length);
    for (let i = 0; i < out.length; i++) out[i] = test(values[i]) ? 1 : 0;
    return boolResult(rows, out);
  };
}

/** The pattern between two `%`: texts with exactly one character, a `_`, between each two. */
type Part = string[];

/**
 * Compiles a pattern of `like`: `%` matches any text, `_` any character (code point), `\` quotes the next
 * character. Each part is matched at the first place after the part before it. A later place could never
 * match more, so the test does not backtrack: its time is at most the text's length times the pattern's.
 */
function likeTest(pattern: string): (text: string) => boolean {
  const [first, ...others] = partsOf(pattern);
  const last = others.pop();
  if (last === undefined) return (text) => endOfMatch(first, text, 0) === text.length;
  return (text) => {
    let at = endOfMatch(first, text, 0);
    for (const part of others) if (at >= 0) at = endOfFirstMatch(part, text, at);
    return at >= 0 && startOfLastMatch(last, text) >= at;
  };
}

function partsOf(pattern: string): Part[] {
  const parts: Part[] = [['']];
  for (const [whole, quoted] of pattern.matchAll(/\\([\s\S])|[\s\S]/gu)) {
    const part = parts[parts.length - 1];
    if (whole === '%') parts.push(['']);
    else if (whole === '_') part.push('');
    else part[part.length - 1] += quoted ?? whole;
  }
  return parts;
}

/** The end of a match that starts at a given index, or -1 without a match. */
function endOfMatch(part: Part, text: string, start: number): number {
  let at = start;
  for (const [i, own] of part.entries()) {
    if (i > 0 && at >= text.length) return -1;
    if (i > 0) at += widthAt(text, at);
    if (!text.startsWith(own, at)) return -1;
    at += own.length;
  }
  return at;
}

function endOfFirstMatch(part: Part, text: string, start: number): number {
  let at = text.indexOf(part[0], start);
  while (at >= 0) {
    const end = endOfMatch(part, text, at);
    if (end >= 0 || at >= text.length) return end;
    at = text.indexOf(part[0], at + widthAt(text, at));
  }
  return -1;
}

/** The start of the match that ends with the text, or -1 without a match. */
function startOfLastMatch(part: Part, text: string): number {
  let at = text.length;
  for (let i = part.length - 1; i >= 0; i--) {
    if (!text.endsWith(part[i], at)) return -1;
    at -= part[i].length;
    if (i > 0 && at === 0) return -1;
    if (i > 0) at -= at > 1 && widthAt(text, at - 2) === 2 ? 2 : 1;
  }
  return at;
}

/** Code units of the character at a place. */
function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
}
