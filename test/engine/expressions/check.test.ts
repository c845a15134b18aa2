import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, test } from 'vitest';
import { UsageError } from '../../../engine/errors.ts';
import { boundsOf, check, checkPredicate } from '../../../engine/expressions/check.ts';
import { evaluate } from '../../../engine/expressions/evaluate.ts';
import { columnsOf, literal, type Expression } from '../../../engine/expressions/expression.ts';
import { functions } from '../../../engine/expressions/functions/table.ts';
import { asExpression, batchOf, cellsOf, column, evaluated } from './evaluated.ts';

const batch = batchOf({
  userId: column('int32', [1]),
  rating: column('float32', [3.5]),
  title: column('utf8', ['Heat']),
  ts: column('timestamp', [0n]),
  day: column('date', [0]),
  big: column('uint64', [1n]),
  seen: column('bool', [true]),
});
const typeOf = (text: string | Expression) => check(asExpression(text), batch.schema).type;

test.each([
  ['userId + 1', 'int64'],
  ['userId / 2', 'float64'],
  ['rating * 2', 'float32'],
  ['rating * 0.1', 'float32'],
  ['rating * cast(0.1 as float64)', 'float64'],
  ['userId * 0.5', 'float64'],
  ['coalesce(userId, 0)', 'int32'],
  ['coalesce(userId, 5000000000)', 'int64'],
  ['case when seen then userId else rating end', 'float32'],
  ['coalesce(day, ts)', 'timestamp'],
  ['greatest(title, null)', 'utf8'],
  ['null', 'null'],
  ['userId + null', 'int64'],
  ["truncate(day, 'month')", 'date'],
  ['sqrt(userId)', 'float64'],
  ['length(title)', 'int64'],
  ['userId > big', 'bool'],
])('%s is %s', (text, type) => expect(typeOf(text)).toBe(type));

test.each([
  [
    'userID > 1',
    'in the expression "userID > 1", there is no column "userID". Did you mean userId? The columns are: userId, rating, title, ts, day, big, seen',
  ],
  [
    'rating > 1 and titel = 1',
    'in the expression "rating > 1 and titel = 1", there is no column "titel". Did you mean title? ',
  ],
  [
    "rating > '3'",
    `in the expression "rating > '3'", "rating > '3'" does not fit x > y: rating is float32, '3' is utf8. cast(x as type) converts a value`,
  ],
  ['lowr(title)', 'there is no function "lowr". Did you mean lower? The functions are: in, and, or, not, '],
  ['lower(rating)', '"lower(rating)" does not fit lower(text): rating is float32'],
  ['lower()', '"lower()" does not fit lower(text): it has no arguments'],
  ['round(rating, 0.5)', 'does not fit round(x, digits)'],
  ["truncate(ts, 'century')", `'century' is no unit of times`],
  ['userId in (big)', 'does not fit x in (constants)'],
  ['seen and rating', 'does not fit a and b: seen is bool, rating is float32'],
  ['case when rating then 1 end', 'the condition rating must be true or false, but its type is float32'],
  [
    "case when seen then 1 else 'a' end",
    `the results of "case when seen then 1 else 'a' end" have no common type: 1 is int64, 'a' is utf8`,
  ],
  ['cast(ts as int64)', 'ts is timestamp, which cannot be cast to int64'],
  ["cast('x' as int32) = userId", "'x' is no int32"],
  ['9223372036854775807 + 1', '9223372036854775808 is beyond int64'],
  ["title ~ '['", "'[' is not a regular expression of RE2"],
])('%s is refused', (text, message) => {
  expect(() => check(asExpression(text), batch.schema)).toThrow(UsageError);
  expect(() => check(asExpression(text), batch.schema)).toThrow(message);
});

it('a predicate must be true or false', () => {
  expect(() => checkPredicate(asExpression('rating + 1'), batch.schema)).toThrow(
    '"rating + 1" must be true or false of a row, but its type is float32. Compare it with a value',
  );
  expect(checkPredicate(literal(null), batch.schema).type).toBe('bool');
});

it('constants are computed once, before any row', () => {
  expect(check(asExpression("concat('a', upper('b')) = 'aB' and 1 < 2"), batch.schema).kind).toBe('constant');
  expect(evaluated("rating > 1 + 1 * 2 and title = lower('HEAT')", batch)).toEqual([false]);
});

it('a tree is JSON, with all digits and without loss', () => {
  for (const value of [
    2n ** 63n - 1n,
    2n ** 64n - 1n,
    -5,
    0.1,
    Number.NaN,
    -Infinity,
    'é',
    true,
    null,
    new Date(5),
  ]) {
    const copy = JSON.parse(JSON.stringify(literal(value))) as Expression;
    expect(copy).toEqual(literal(value));
    const wanted =
      value instanceof Date
        ? 5000n
        : typeof value === 'number' && Number.isInteger(value)
          ? BigInt(value)
          : value;
    expect(cellsOf(evaluate(check(copy, batch.schema), batch))).toEqual([wanted]);
  }
});

it('every function is on its page', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/expressions.md'), 'utf8');
  const words = {
    in: '`in (constants)`',
    negate: '`-x`',
    isNull: '`is null`',
    isNotNull: '`is not null`',
    like: ' like ',
    rlike: '`rlike`',
  };
  const shown = (name: string) =>
    Object.entries(words).find(([own]) => own === name)?.[1] ??
    (/^(\W+|and|or|not)$/.test(name) ? `\`${name}\`` : `\`${name}(`);
  expect(Object.keys(functions).filter((name) => !page.includes(shown(name)))).toEqual([]);
});

it('the columns that it reads are known', () => {
  expect(columnsOf(asExpression('case when a > b then lower(c) else cast(a as text) end'))).toEqual([
    'a',
    'b',
    'c',
  ]);
});

test.each<[string, string[]]>([
  ['rating >= 3.5 and 10 > userId', ['rating >= 3.5', 'userId < 10']],
  [
    "ts between '2024-01-01' and '2024-02-01 12:00:00'",
    ['ts >= 2024-01-01 00:00:00', 'ts <= 2024-02-01 12:00:00'],
  ],
  [
    "title in ('a', 'b') and seen is not null and day = '2024-01-01'",
    ['title in a,b', 'seen isNotNull ', 'day = 2024-01-01'],
  ],
  ['rating > 1 or userId = 1', []],
  ['(rating > 1 or seen) and userId != 1 and big <=> 5', ['userId != 1', 'big <=> 5']],
  ['rating + 1 > 2 and rating > userId and seen', []],
  ['big < 18446744073709551615 and userId > 2 + 3', ['big < 18446744073709551615', 'userId > 5']],
  ['rating > 3.3', [`rating > ${Math.fround(3.3)}`]],
])('the bounds of %s', (text, expected) => {
  const bounds = boundsOf(checkPredicate(asExpression(text), batch.schema));
  expect(
    bounds.map(
      ({ column, operator, values }) => `${column} ${operator} ${values.map(({ value }) => value).join()}`,
    ),
  ).toEqual(expected);
});
