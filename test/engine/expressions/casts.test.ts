import { describe, expect, it, test } from 'vitest';
import type { ValueType } from '../../../engine/expressions/types.ts';
import { setOrigin } from '../../../engine/stream/stream.ts';
import { batchOf, type Cell, column, evaluated } from './evaluated.ts';

const inf = Number.POSITIVE_INFINITY;
const wide = 2n ** 60n + 1n;

/** Source type, its values, target type, and the converted values; 'fails' for an error. */
const cases: [ValueType, Cell[], ValueType, Cell[]][] = [
  [
    'utf8',
    ['12', ' -3 ', '+4', '1.5', '', 'x', null, '128'],
    'int8',
    [12, -3, 4, 'fails', 'fails', 'fails', null, 'fails'],
  ],
  [
    'utf8',
    ['9007199254740993', '-9223372036854775808', '9223372036854775808'],
    'int64',
    [9007199254740993n, -(2n ** 63n), 'fails'],
  ],
  ['utf8', ['18446744073709551615', '-1'], 'uint64', [2n ** 64n - 1n, 'fails']],
  [
    'utf8',
    ['1e3', '.5', '5.', 'NaN', '-Infinity', 'inf', '1,5', '0x10'],
    'float64',
    [1000, 0.5, 5, Number.NaN, -inf, inf, 'fails', 'fails'],
  ],
  ['utf8', ['0.1'], 'float32', [Math.fround(0.1)]],
  ['utf8', ['true', 'F', 'yes', '0', 'maybe'], 'bool', [true, false, true, false, 'fails']],
  ['utf8', ['1970-01-02', '1970-01-02 03:00:00', 'x'], 'date', [1, 1, 'fails']],
  ['utf8', ['1970-01-01 00:00:01', '1970-01-02'], 'timestamp', [1_000_000n, 86_400_000_000n]],
  [
    'float64',
    [1.9, -1.9, 127.9, 128, Number.NaN, inf, null],
    'int8',
    [1, -1, 127, 'fails', 'fails', 'fails', null],
  ],
  ['float64', [2 ** 60, -(2 ** 63), 2 ** 63], 'int64', [2n ** 60n, -(2n ** 63n), 'fails']],
  ['float64', [0.1, 1e300], 'float32', [Math.fround(0.1), inf]],
  ['float64', [0, Number.NaN, 0.5, null], 'bool', [false, true, true, null]],
  ['float64', [0.1, 5, 1e21, Number.NaN], 'utf8', ['0.1', '5', '1e+21', 'NaN']],
  ['float32', [0.1, 16_777_216], 'utf8', ['0.1', '16777216']],
  ['int64', [wide, -5n, null], 'utf8', [String(wide), '-5', null]],
  ['int64', [wide, -5n, null], 'int32', ['fails', -5, null]],
  ['int64', [wide, -5n], 'uint64', [wide, 'fails']],
  ['int64', [wide], 'float64', [2 ** 60]],
  ['uint64', [2n ** 64n - 1n, 1n], 'int64', ['fails', 1n]],
  ['int32', [300, 5], 'uint8', ['fails', 5]],
  ['bool', [true, false, null], 'int32', [1, 0, null]],
  ['bool', [true, false], 'utf8', ['true', 'false']],
  ['date', [1, -1], 'timestamp', [86_400_000_000n, -86_400_000_000n]],
  ['timestamp', [-1n, 86_400_000_000n], 'date', [-1, 1]],
];

describe.each(cases.map((one) => [`${one[0]} ${one[1].join(', ')} to ${one[2]}`, ...one] as const))(
  '%s',
  (_, from, cells, to, expected) => {
    const batch = batchOf({ x: column(from, cells) });

    it('gives null by try_cast where there is no such value', () => {
      expect(evaluated(`try_cast(x as ${to})`, batch)).toEqual(
        expected.map((cell) => (cell === 'fails' ? null : cell)),
      );
    });

    it('is an error of the first row without one', () => {
      const row = expected.indexOf('fails');
      const cast = () => evaluated(`cast(x as ${to})`, batch);
      if (row < 0) expect(cast()).toEqual(expected);
      else expect(cast).toThrow(`is no ${to} (row ${row + 1})`);
    });

    it('is the same of constants', () => {
      const one = batchOf({ x: column('bool', [true]) });
      cells.forEach((cell, row) => {
        if (typeof cell !== 'string' || from !== 'utf8') return;
        const [got] = evaluated(`try_cast('${cell}' as ${to})`, one);
        expect(got).toEqual(expected[row] === 'fails' ? null : expected[row]);
      });
    });
  },
);

test('the error names the file and line of the row', () => {
  const batch = batchOf({ t: column('utf8', ['1', '2', 'three']) });
  setOrigin(batch, { file: 'ratings.csv', firstRow: 10, lineOf: (row) => 12 + row });
  expect(() => evaluated('cast(t as int) + 1', batch)).toThrow(
    "cast(t as int32): 'three' is no int32 (ratings.csv, line 14)",
  );
});
