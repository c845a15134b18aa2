import { expect, it, test } from 'vitest';
import { batchOf, column, evaluated, selected, type Cell } from './evaluated.ts';

const three = [true, false, null] as const;
const pairs = three.flatMap((a) => three.map((b) => [a, b] as const));
const batch = batchOf({
  a: column(
    'bool',
    pairs.map(([a]) => a),
  ),
  b: column(
    'bool',
    pairs.map(([, b]) => b),
  ),
});

const and = (a: Cell, b: Cell) =>
  a === false || b === false ? false : a === null || b === null ? null : true;
const or = (a: Cell, b: Cell) => (a === true || b === true ? true : a === null || b === null ? null : false);
const not = (a: Cell) => (a === null ? null : a === false);

test.each([
  ['a and b', and],
  ['a or b', or],
  ['not a', not],
  ['not (a and not b)', (a: Cell, b: Cell) => not(and(a, not(b)))],
  ['a and true', (a: Cell) => a],
  ['a or null', (a: Cell) => or(a, null)],
  ['a and null', (a: Cell) => and(a, null)],
  ['coalesce(a, b)', (a: Cell, b: Cell) => a ?? b],
  ['case when a then 1 when b then 2 else 3 end', (a: Cell, b: Cell) => (a ? 1n : b ? 2n : 3n)],
  ["case when a then 'x' end", (a: Cell) => (a ? 'x' : null)],
  ['a is null or b', (a: Cell, b: Cell) => or(a === null, b)],
  ['a <=> b', (a: Cell, b: Cell) => a === b],
  ['a < b', (a: Cell, b: Cell) => (a === null || b === null ? null : !a && b)],
])('%s', (text, expected) => {
  const values = pairs.map(([a, b]) => expected(a, b));
  expect(evaluated(text, batch)).toEqual(values);
});

test('rows are selected where all is true, whatever the parts are', () => {
  const n = batchOf({
    x: column('float64', [1, 2, 3, 4, 5, 6]),
    y: column('float64', [6, 5, 4, 3, 2, 1]),
    z: column('float64', [null, 1, null, 1, 1, 1]),
  });
  expect(selected('x > 2 and y >= 2', n)).toEqual([2, 3, 4]);
  expect(selected('x > 2 and y >= 2 and z = 1', n)).toEqual([3, 4]);
  expect(selected('z = 1 and x <= 4 and x != 2', n)).toEqual([3]);
  expect(selected('x < 2 or y < 3', n)).toEqual([0, 4, 5]);
  expect(selected('x < 3 or y < 5 or x = 1', n)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(selected('(x < 3 or x > 5) and not y = 5', n)).toEqual([0, 5]);
  expect(selected('true', n)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(selected('x > 1 and true', n)).toEqual([1, 2, 3, 4, 5]);
  expect(selected('null', n)).toEqual([]);
  for (const unknown of ['null', '(-8 / 0)', 'cast(null as double)'])
    for (const operator of ['=', '!=', '<', '<=', '>', '>='])
      expect(selected(`x ${operator} ${unknown}`, n)).toEqual([]);
  expect(selected('1 > 2', n)).toEqual([]);
});

it('a part that can fail is not asked where the parts before it decide', () => {
  const texts = batchOf({ t: column('utf8', ['1', 'x', '3', null]) });
  expect(selected("t ~ '^[0-9]+$' and cast(t as int) > 1", texts)).toEqual([2]);
  expect(selected("t = 'x' or cast(t as int) > 1", texts)).toEqual([1, 2]);
  expect(evaluated("case when t = 'x' then 0 else cast(t as int64) end", texts)).toEqual([1n, 0n, 3n, null]);
  expect(() => selected('cast(t as int) > 1', texts)).toThrow("cast(t as int32): 'x' is no int32 (row 2)");
});

it('an empty batch has no rows and no values', () => {
  const empty = batchOf({ x: column('float32', []), t: column('utf8', []), l: column('int64', []) });
  expect(selected('x > 1 or l = 1', empty)).toEqual([]);
  expect(selected('true', empty)).toEqual([]);
  for (const text of [
    'x + 1',
    'lower(t)',
    'l * l',
    'coalesce(x, 1)',
    "case when x > 1 then 'a' end",
    'cast(t as int)',
    '1',
  ])
    expect(evaluated(text, empty)).toEqual([]);
});
