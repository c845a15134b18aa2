import { describe, expect, it, test } from 'vitest';
import { batchOf, column, evaluated, selected } from './evaluated.ts';

const big = 2n ** 60n;
const batch = batchOf({
  i: column('int32', [1, -7, 0, null, 5]),
  j: column('int8', [2, 2, 0, 1, null]),
  l: column('int64', [big, -big, 3n, null, 2n ** 63n - 1n]),
  u: column('uint64', [2n ** 64n - 1n, 1n, 3n, 4n, 5n]),
  f: column('float32', [0.1, 2.5, Number.NaN, null, -3.5]),
  d: column('float64', [0.1, -0, Number.NaN, Number.POSITIVE_INFINITY, null]),
});
const small = batchOf({ l: column('int64', [big, -big, 3n, null]), i: column('int32', [1, -7, 0, null]) });

test.each([
  ['i + j', [3n, -5n, 0n, null, null]],
  ['i - j * 2', [-3n, -11n, 0n, null, null]],
  ['i / j', [0.5, -3.5, null, null, null]],
  ['i % j', [1n, -1n, null, null, null]],
  ['-i', [-1n, 7n, 0n, null, -5n]],
  ['abs(i)', [1n, 7n, 0n, null, 5n]],
  ['i + 0.5', [1.5, -6.5, 0.5, null, 5.5]],
  ['f * 2', [Math.fround(0.2), 5, Number.NaN, null, -7]],
  ['d / 0', [null, null, null, null, null]],
  ['d % 0', [null, null, null, null, null]],
  ['l % 7', [big % 7n, -(big % 7n), 3n, null, (2n ** 63n - 1n) % 7n]],
  ['sqrt(i)', [1, Number.NaN, 0, null, Math.sqrt(5)]],
  ['ln(i)', [0, null, null, null, Math.log(5)]],
  ['log1p(i)', [Math.log1p(1), null, 0, null, Math.log1p(5)]],
  ['pow(i, 2)', [1, 49, 0, null, 25]],
  ['exp(i)', [Math.E, Math.exp(-7), 1, null, Math.exp(5)]],
  ['floor(f)', [0, 2, Number.NaN, null, -4]],
  ['ceil(f)', [1, 3, Number.NaN, null, -3]],
  ['round(f)', [0, 3, Number.NaN, null, -4]],
  ['round(i, -1)', [0n, -10n, 0n, null, 10n]],
  ['round(l, -1)', [1152921504606846980n, -1152921504606846980n, 0n, null, null]],
  ['least(i, j)', [1, -7, 0, 1, 5]],
  ['greatest(i, j, 1)', [2, 2, 1, 1, 5]],
  [
    'greatest(f, d)',
    [0.1, 2.5, Number.NaN, Number.POSITIVE_INFINITY, -3.5].map((x, k) => (k === 0 ? Math.fround(0.1) : x)),
  ],
])('%s', (text, expected) => {
  const from = text.startsWith('round(l') ? small : batch;
  const wanted = text.startsWith('round(l') ? expected.slice(0, 4) : expected;
  expect(evaluated(text, from)).toEqual(wanted);
});

describe('comparisons', () => {
  it.each([
    ['f = 0.1', [true, false, false, null, false]],
    ['d = 0', [false, true, false, false, null]],
    ['f > 2', [false, true, true, null, false]],
    ['f >= 2.5', [false, true, true, null, false]],
    ['f < 100', [true, true, false, null, true]],
    ['f <= d', [false, false, true, null, null]],
    ['d = d', [true, true, true, true, null]],
    ['f != f', [false, false, false, null, false]],
    ['l < u', [true, true, false, null, false]],
    ['u > 9223372036854775807', [true, false, false, false, false]],
    ['l = 9223372036854775807', [false, false, false, null, true]],
    ['u >= l', [true, true, true, null, false]],
    ['i <=> null', [false, false, false, true, false]],
    ['i <=> j', [false, false, true, false, false]],
    ['i in (1, 5)', [true, false, false, null, true]],
    ['i in (1, null)', [true, null, null, null, null]],
    ['i not in (1, null)', [false, null, null, null, null]],
    ['l in (3, 1152921504606846976)', [true, false, true, null, false]],
    ['d between 0 and 1', [true, true, false, false, null]],
    ['is_nan(d)', [false, false, true, false, null]],
    ['d is null', [false, false, false, false, true]],
  ])('%s', (text, expected) => {
    expect(evaluated(text, batch)).toEqual(expected);
    expect(selected(text, batch)).toEqual(expected.flatMap((value, row) => (value === true ? [row] : [])));
  });

  it('are in the order of float32 with literals, also where 0.1 is none', () => {
    const ratings = batchOf({ rating: column('float32', [3.3, 3.29, 3.31]) });
    expect(selected('rating >= 3.3', ratings)).toEqual([0, 2]);
    expect(selected('3.3 > rating', ratings)).toEqual([1]);
  });
});

it('integers beyond int64 are errors that name the row, and those between 2^53 and 2^63 are exact', () => {
  expect(evaluated('l + l', small)).toEqual([2n * big, -2n * big, 6n, null]);
  expect(evaluated('i * 9007199254740993', small)).toEqual([
    9007199254740993n,
    -7n * 9007199254740993n,
    0n,
    null,
  ]);
  expect(() => evaluated('l * 8', small)).toThrow('l * 8: 9223372036854775808 is beyond int64 (row 1)');
  expect(evaluated('case when i = 0 then l * 8 end', small)).toEqual([null, null, 24n, null]);
});

test('rounding goes to the nearest decimal, halves away from 0', () => {
  const values = [0.5, 1.5, -0.5, 2.675, 1e300, 0.49999999999999994, 2 ** 52 - 0.5];
  const one = batchOf({ x: column('float64', values) });
  expect(evaluated('round(x)', one)).toEqual([1, 2, -1, 3, 1e300, 0, 2 ** 52]);
  expect(evaluated('round(x, 2)', one)).toEqual([0.5, 1.5, -0.5, 2.68, 1e300, 0.5, 2 ** 52 - 0.5]);
});
