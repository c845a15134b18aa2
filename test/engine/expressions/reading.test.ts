import {
  DateDay,
  DateMillisecond,
  Decimal,
  Dictionary,
  Float16,
  Int32,
  Int64,
  LargeUtf8,
  List,
  makeData,
  Field,
  Timestamp,
  TimeUnit,
  Utf8,
  Vector,
  type Data,
} from 'apache-arrow';
import { expect, it, test } from 'vitest';
import type { DataError } from '../../../engine/errors.ts';
import { check } from '../../../engine/expressions/check.ts';
import { evaluate } from '../../../engine/expressions/evaluate.ts';
import { parseExpression } from '../../../connectors/expressions/parse-expression.ts';
import { toHalf } from '../../../engine/numbers/half.ts';
import { batchOf, column, evaluated, selected } from './evaluated.ts';

const words = (...values: bigint[]) =>
  new Uint32Array(
    BigInt64Array.from(values.flatMap((value) => [BigInt.asIntN(64, value), value >> 64n])).buffer,
  );
const timestamp = (unit: TimeUnit, values: bigint[]) =>
  makeData({ type: new Timestamp(unit), data: BigInt64Array.from(values) });
const coded = (codes: Int32Array, dictionary: Vector<Int64>) =>
  makeData({ type: new Dictionary(new Int64(), new Int32()), data: codes, dictionary });

test.each<[string, Data, string, unknown[]]>([
  [
    'decimal(6, 2)',
    makeData({ type: new Decimal(2, 6), data: words(12_345n, -1n) }),
    'x * 2',
    ['246.90 (16,2)', '-0.02 (16,2)'],
  ],
  [
    'decimal(18, 0)',
    makeData({ type: new Decimal(0, 18), data: words(2n ** 59n + 1n, -1n) }),
    'x + 1',
    [`${2n ** 59n + 2n} (18,0)`, '0 (18,0)'],
  ],
  [
    'decimal(38, 20)',
    makeData({ type: new Decimal(20, 38), data: words(15n * 10n ** 19n, -(10n ** 20n)) }),
    'x + 0',
    ['1.50000000000000000000 (38,20)', '-1.00000000000000000000 (38,20)'],
  ],
  [
    'decimal32',
    makeData({ type: new Decimal(2, 9, 32), data: Uint32Array.of(125, -5 >>> 0) }),
    'x',
    ['1.25 (9,2)', '-0.05 (9,2)'],
  ],
  [
    'a decimal256 of few digits',
    makeData({ type: new Decimal(2, 50, 256), data: Uint32Array.of(125, 0, 0, 0, 0, 0, 0, 0) }),
    'x * 2',
    ['2.50 (38,2)'],
  ],
  [
    'a decimal with digits left out before the point',
    makeData({ type: new Decimal(-3, 5), data: words(12n) }),
    'x + 1',
    ['12001 (11,0)'],
  ],
  ['float16', makeData({ type: new Float16(), data: toHalf(Float32Array.of(1.5, -2)) }), 'x + 1', [2.5, -1]],
  [
    'date in ms',
    makeData({ type: new DateMillisecond(), data: BigInt64Array.of(86_400_000n, -1n) as never }),
    'year(x)',
    [1970, 1969],
  ],
  [
    'timestamp(s)',
    timestamp(TimeUnit.SECOND, [1n, -1n, 10n ** 12n]),
    'unix_seconds(x)',
    [1n, -1n, 10n ** 12n],
  ],
  [
    'timestamp(ms)',
    timestamp(TimeUnit.MILLISECOND, [1_500n, -1n, 2n ** 53n]),
    'unix_seconds(x)',
    [1n, -1n, 9_007_199_254_740n],
  ],
  [
    'timestamp(ns)',
    timestamp(TimeUnit.NANOSECOND, [-1n, 1_700_000_000_123_456_789n, -1_700_000_000_123_456_789n]),
    'cast(x as text)',
    ['1969-12-31 23:59:59.999999', '2023-11-14 22:13:20.123456', '1916-02-18 01:46:39.876543'],
  ],
  [
    'large utf8',
    makeData({
      type: new LargeUtf8(),
      valueOffsets: BigInt64Array.of(0n, 1n, 3n),
      data: new TextEncoder().encode('aé'),
    }),
    'upper(x)',
    ['A', 'É'],
  ],
  [
    'a text that begins with a byte order mark',
    makeData({ type: new Utf8(), valueOffsets: Int32Array.of(0, 4), data: Buffer.from('\ufeffa') }),
    'length(x)',
    [2n],
  ],
  [
    'a dictionary of integers',
    coded(Int32Array.of(1, 0, 1), new Vector([column('int64', [5n, null])]) as Vector<Int64>),
    'x + 1',
    [null, 6n, null],
  ],
  [
    'a dictionary in chunks',
    makeData({
      type: new Dictionary(new Utf8(), new Int32()),
      data: Int32Array.of(2, 0, 1),
      dictionary: new Vector([column('utf8', ['a', null]), column('utf8', ['c'])]) as Vector<Utf8>,
    }),
    'upper(x)',
    ['C', 'A', null],
  ],
])('%s', (_, data, text, expected) => {
  expect(evaluated(text, batchOf({ x: data }))).toEqual(expected);
});

test.each<[string, Data, string]>([
  ['seconds', timestamp(TimeUnit.SECOND, [0n, 2n ** 44n]), 'year(x)'],
  ['milliseconds', timestamp(TimeUnit.MILLISECOND, [0n, -(2n ** 60n)]), 'year(x)'],
  [
    'dates in milliseconds',
    makeData({ type: new DateMillisecond(), data: BigInt64Array.of(0n, 2n ** 62n) as never }),
    'year(x)',
  ],
  ['dates', makeData({ type: new DateDay(), data: Int32Array.of(0, 2 ** 30) }), 'cast(x as timestamp)'],
])('%s beyond the range of their result are an error with the row and the value', (_, data, text) => {
  expect(() => evaluated(text, batchOf({ x: data }))).toThrow(
    /is beyond the (years|range)|'2941775-04-07' is no timestamp/,
  );
  try {
    evaluated(text, batchOf({ x: data }));
  } catch (error) {
    expect((error as DataError).details).toMatchObject({ row: 1 });
  }
});

it('a decimal256 of more than 38 digits is an error with the row and the type', () => {
  const data = Uint32Array.of(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
  const x = makeData({ type: new Decimal(2, 50, 256), length: 2, data });
  expect(() => evaluated('x + 1', batchOf({ x }))).toThrow(
    'a value of Decimal[50e+2] has more than 38 digits',
  );
});

it('rows of a slice are those of the slice, of every type', () => {
  const whole = batchOf({
    b: column('bool', [true, null, false, true, null, true, false, true, false, null, true]),
    i: column('int16', [0, 1, 2, null, 4, 5, 6, 7, 8, 9, 10]),
    l: column('int64', [0n, 1n, 2n, 3n, null, 5n, 6n, 7n, 2n ** 60n, 9n, 10n]),
    f: column('float32', [0, 1, 2, 3, 4, null, 6, 7, 8, 9, 10]),
    t: column('utf8', ['0', 'é', '2', '3', '4', '5', null, '7', '8', '9', 'x']),
    ts: column('timestamp', [0n, 1n, 2n, 3n, 4n, 5n, 6n, null, 8n, 9n, 10n]),
  });
  for (const text of [
    'not b',
    'i + 1',
    'l * 2',
    'f / 2',
    'upper(t)',
    "ts > '1970-01-01'",
    'b is null',
    'f < 5 or b',
    'coalesce(t, t)',
    'l',
    't',
  ]) {
    const all = evaluated(text, whole);
    for (const [from, to] of [
      [0, 11],
      [1, 9],
      [3, 4],
      [8, 11],
      [5, 5],
    ] as const)
      expect([text, evaluated(text, whole.slice(from, to))]).toEqual([text, all.slice(from, to)]);
  }
  expect(selected('i >= 5', whole.slice(4, 9))).toEqual([1, 2, 3, 4]);
});

it('a bare column is given as it is, whatever its type', () => {
  const list = makeData({
    type: new List(new Field('item', new Int32(), true)),
    valueOffsets: Int32Array.of(0, 1, 2),
    child: column('int32', [1, 2]),
    nullCount: 1,
    nullBitmap: Uint8Array.of(1),
  } as never);
  const batch = batchOf({ x: list });
  expect(evaluate(check(parseExpression('x'), batch.schema), batch)).toBe(batch.data.children[0]);
  expect(evaluated('x is null', batch)).toEqual([false, true]);
  expect(() => evaluated('x = 1', batch)).toThrow('"x = 1" does not fit x = y: x is List<Int32>, 1 is int64');
});
