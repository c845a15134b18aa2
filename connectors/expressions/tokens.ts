/**
 * A number that the parser would round, or could not read, is rewritten as a cast of its text to this type,
 * which marks it.
 */
export const NUMBER = 'number as written';

/**
 * Functions that `rewrite` puts around a cast to mark how it was written: as `try_cast`, or as a literal such
 * as `date '2024-01-01'`.
 */
export const TRY = 'try_cast';
export const TIME = 'time as written';

/** Stands for * in a quoted name, where the parser's lexer has none; no text has this character. */
const STAR = '\ufdd0';

/** A name as the parser gives it, as the user wrote it. */
export function nameOf(parsed: string): string {
  return parsed.replaceAll('""', '"').replaceAll(STAR, '*');
}

const token =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[\p{L}_][\p{L}\p{N}_]*|<=>|./gsu;

const constant = /'(?:[^']|'')*'|-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;

const times = /\b(?:date|timestamp)\s*'(?:[^']|'')*'/iy;

const words = /^(and|or|not|in|is|null|true|false|like|between|case|when|then|else|end|cast|as)$/i;

/** Name of a call that replaces a list of constants; its argument is the list's number. */
export const LIST = 'constants as written';

/** Longer lists of constants are not parsed, since the parser takes a kilobyte and a millisecond for each. */
const SHORT_LIST = 16;

/** An expression that the parser can read, and its long lists of constants. */
export interface Rewritten {
  readonly text: string;
  /** The tokens of the constants of each list: numbers, also with a minus, and texts in quotes. */
  readonly lists: readonly (readonly string[])[];
}

/**
 * Rewrites an expression so that the parser for PostgreSQL's language can read it. Quotes names, so that
 * they keep their case and may be keywords of PostgreSQL, such as user. Writes numbers of many digits as
 * casts. Replaces syntax that PostgreSQL does not have: `a b` in backticks, <=>, rlike and try_cast. Takes out
 * long lists of constants.
 */
export function rewrite(text: string): Rewritten {
  const lists: (readonly string[])[] = [];
  let out = '';
  // The open parentheses. True for the parenthesis of try_cast, at whose end two must be closed.
  const open: boolean[] = [];
  for (let at = 0; at < text.length;) {
    times.lastIndex = at;
    token.lastIndex = at;
    const time = times.exec(text)?.[0];
    const part = time ?? token.exec(text)?.[0] ?? '';
    at += part.length;
    const list = /^in$/i.test(part) ? constantsAt(text, at) : undefined;
    if (list !== undefined) {
      at = list.end;
      out += `in ("${LIST}"(${lists.push(list.constants) - 1}))`;
      continue;
    }
    if (part === '(') open.push(out.endsWith(`"${TRY}"(cast`));
    if (time !== undefined) out += `"${TIME}"(${time})`;
    else out += part === ')' && open.pop() === true ? '))' : written(part);
  }
  return { text: out, lists };
}

/** The list `(1, -2, 'a')` at a place if it is long and has only constants. */
function constantsAt(
  text: string,
  start: number,
): { readonly constants: readonly string[]; readonly end: number } | undefined {
  const constants: string[] = [];
  const separated = /\s*([(,)])\s*/y;
  for (let at = start; ;) {
    separated.lastIndex = at;
    const separator = separated.exec(text)?.[1];
    if (separator === undefined || (separator === '(') !== (at === start)) return undefined;
    if (separator === ')') {
      const end = separated.lastIndex;
      return constants.length > SHORT_LIST ? { constants, end } : undefined;
    }
    constant.lastIndex = separated.lastIndex;
    const found = constant.exec(text)?.[0];
    if (found === undefined) return undefined;
    constants.push(found);
    at = constant.lastIndex;
  }
}

function written(part: string): string {
  if (part.startsWith('`')) return quoted(part.slice(1, -1));
  if (part.startsWith('"')) return part.replaceAll('*', STAR);
  if (part === '<=>') return '@>';
  if (/^\.?\d/.test(part)) {
    return isSafe(part) ? part : `('${part}'::"${NUMBER}")`;
  }
  if (!/^[\p{L}_]/u.test(part) || words.test(part)) return part;
  if (/^try_cast$/i.test(part)) return `"${TRY}"(cast`;
  return /^(rlike|regexp)$/i.test(part) ? '~' : quoted(part);
}

/** True for a number that the parser reads exactly. */
export function isSafe(number: string): boolean {
  return !/e/i.test(number) && (number.includes('.') || Number.isSafeInteger(Number(number)));
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""').replaceAll('*', STAR)}"`;
}
