import type { Cast } from '../engine/expressions/expression.ts';
import { type Column, type ColumnOrValue, made } from './expressions.ts';

/** The first value that is not null: `coalesce(col('a'), col('b'), 0)`. */
export const coalesce = (...values: readonly ColumnOrValue[]): Column => made('coalesce', ...values);
/** Replaces null by a value: `ifNull(col('a'), 0)`. */
export const ifNull = (value: ColumnOrValue, other: ColumnOrValue): Column => made('coalesce', value, other);
/** The smallest value that is not null: `least(col('a'), 5)`. */
export const least = (...values: readonly ColumnOrValue[]): Column => made('least', ...values);
/** The largest value that is not null: `greatest(col('a'), 0)`. */
export const greatest = (...values: readonly ColumnOrValue[]): Column => made('greatest', ...values);

/** `abs(col('a'))`. */
export const abs = (value: ColumnOrValue): Column => made('abs', value);
/** `sqrt(col('a'))`; NaN below 0. */
export const sqrt = (value: ColumnOrValue): Column => made('sqrt', value);
/** Natural logarithm; null for 0 and below: `ln(col('plays'))`. */
export const ln = (value: ColumnOrValue): Column => made('ln', value);
/** ln(1 + x); null for -1 and below: `log1p(col('plays'))`. */
export const log1p = (value: ColumnOrValue): Column => made('log1p', value);
/** `exp(col('a'))`. */
export const exp = (value: ColumnOrValue): Column => made('exp', value);
/** `pow(col('a'), 2)`. */
export const pow = (value: ColumnOrValue, power: ColumnOrValue): Column => made('pow', value, power);
/** Rounds to decimals (default: 0), halves away from 0: `round(col('rating'), 1)`. */
export const round = (value: ColumnOrValue, digits: ColumnOrValue = 0): Column =>
  made('round', value, digits);
/** The largest whole number not above it: `floor(col('rating'))`. */
export const floor = (value: ColumnOrValue): Column => made('floor', value);
/** The smallest whole number not below it: `ceil(col('rating'))`. */
export const ceil = (value: ColumnOrValue): Column => made('ceil', value);

/** `lower(col('title'))`. */
export const lower = (text: ColumnOrValue): Column => made('lower', text);
/** `upper(col('title'))`. */
export const upper = (text: ColumnOrValue): Column => made('upper', text);
/** Removes spaces at both ends: `trim(col('title'))`. */
export const trim = (text: ColumnOrValue): Column => made('trim', text);
/** Number of characters: `length(col('title'))`. */
export const length = (text: ColumnOrValue): Column => made('length', text);
/** `concat(col('first'), ' ', col('last'))`. */
export const concat = (...texts: readonly ColumnOrValue[]): Column => made('concat', ...texts);
/** From character `start`, counted from 1, or from the end if negative: `substring(col('title'), 1, 3)`. */
export const substring = (text: ColumnOrValue, start: ColumnOrValue, count?: ColumnOrValue): Column =>
  made('substring', text, start, ...(count === undefined ? [] : [count]));
/** Replaces all occurrences: `replace(col('title'), ':', '')`. */
export const replace = (text: ColumnOrValue, search: ColumnOrValue, by: ColumnOrValue): Column =>
  made('replace', text, search, by);

/**
 * The first match of a regular expression (RE2), or one of its groups; '' if nothing matches:
 * `regexpExtract(col('title'), '\\((\\d+)\\)', 1)`.
 */
export const regexpExtract = (text: ColumnOrValue, pattern: string, group = 0): Column =>
  made('regexpExtract', text, pattern, group);
/** Replaces all matches; `$1` is the first group: `regexpReplace(col('title'), ' +', ' ')`. */
export const regexpReplace = (text: ColumnOrValue, pattern: string, by: string): Column =>
  made('regexpReplace', text, pattern, by);
/** Part `n` between separators, from 1, or from the end if negative: `splitPart(col('genres'), '|', 1)`. */
export const splitPart = (text: ColumnOrValue, separator: ColumnOrValue, n: ColumnOrValue): Column =>
  made('splitPart', text, separator, n);
/**
 * The text at a path of a JSON text; null where there is nothing. A text that is not JSON is an error, or
 * null: `jsonText(col('event'), '$.tags[0].name', 'null')`.
 */
export const jsonText = (text: ColumnOrValue, path: string, onError: Cast['onError'] = 'error'): Column =>
  made('jsonText', text, path, onError);

/** The texts between separators, as a list; each character if it is empty: `split(col('genres'), '|')`. */
export const split = (text: ColumnOrValue, separator: ColumnOrValue): Column =>
  made('split', text, separator);
/**
 * Element `n` of a list, from 1, or from the end if negative; null beyond it: `elementAt(col('tags'), 1)`.
 */
export const elementAt = <Value = unknown>(list: ColumnOrValue, n: ColumnOrValue): Column<string, Value> =>
  made('elementAt', list, n);
/** Number of elements: `listLength(col('tags'))`. */
export const listLength = (list: ColumnOrValue): Column<string, bigint | null> => made('listLength', list);
/** A field of a struct: `field(elementAt(col('orders'), 1), 'price')`; `col('s.a')` for one of a column. */
export const field = <Value = unknown>(struct: ColumnOrValue, name: string): Column<string, Value> =>
  made('field', struct, name);

/** Units of `truncate` and `dateAdd`. */
export type TimeUnit = 'year' | 'quarter' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second';

/**
 * The start of the unit that contains a time: `truncate(col('ts'), 'month', 'Europe/Berlin')`. Weeks start on
 * Monday. Here and in the other functions of times, `zone` is by default the zone of the column, else UTC.
 */
export const truncate = (time: ColumnOrValue, unit: TimeUnit, zone?: string): Column =>
  inZone('truncate', zone, time, unit);
/** The time after (or before, if negative) a number of units: `dateAdd(col('ts'), 1, 'month')`. */
export const dateAdd = (time: ColumnOrValue, count: ColumnOrValue, unit: TimeUnit, zone?: string): Column =>
  inZone('dateAdd', zone, time, count, unit);
/** The same times, with their days and hours in a zone: `atZone(col('ts'), 'America/Los_Angeles')`. */
export const atZone = (time: ColumnOrValue, zone: string): Column => made('atZone', time, zone);
/** `year(col('ts'))`. */
export const year = (time: ColumnOrValue, zone?: string): Column => inZone('year', zone, time);
/** 1 to 12: `month(col('ts'))`. */
export const month = (time: ColumnOrValue, zone?: string): Column => inZone('month', zone, time);
/** Day of the month, from 1: `day(col('ts'))`. */
export const day = (time: ColumnOrValue, zone?: string): Column => inZone('day', zone, time);
/** 0 to 23: `hour(col('ts'))`. */
export const hour = (time: ColumnOrValue, zone?: string): Column => inZone('hour', zone, time);
/** 1 (Sunday) to 7 (Saturday): `dayOfWeek(col('ts'))`. */
export const dayOfWeek = (time: ColumnOrValue, zone?: string): Column => inZone('dayOfWeek', zone, time);
const inZone = (name: string, zone: string | undefined, ...args: readonly ColumnOrValue[]): Column =>
  made(name, ...args, ...(zone === undefined ? [] : [zone]));
/** Timestamp from seconds since 1970: `timestampSeconds(col('ts'))`. */
export const timestampSeconds = (seconds: ColumnOrValue): Column => made('timestampSeconds', seconds);
/** Whole seconds since 1970: `unixSeconds(col('ts'))`. */
export const unixSeconds = (time: ColumnOrValue): Column => made('unixSeconds', time);
/** Timestamp from an ISO text: `toTimestamp(col('date'))`. */
export const toTimestamp = (text: Column, onError: Cast['onError'] = 'error'): Column =>
  text.cast('timestamp', onError);

/** Functions of columns, with Spark's names: `functions.log1p(col('plays'))`. */
export const functions = {
  abs,
  atZone,
  ceil,
  coalesce,
  concat,
  dateAdd,
  day,
  dayOfWeek,
  elementAt,
  exp,
  field,
  floor,
  greatest,
  hour,
  ifNull,
  jsonText,
  least,
  length,
  listLength,
  ln,
  log1p,
  lower,
  month,
  pow,
  regexpExtract,
  regexpReplace,
  replace,
  round,
  split,
  splitPart,
  sqrt,
  substring,
  timestampSeconds,
  toTimestamp,
  trim,
  truncate,
  unixSeconds,
  upper,
  year,
} as const;
