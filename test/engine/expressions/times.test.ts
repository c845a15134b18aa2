import { expect, it, test } from 'vitest';
import {
  DAY,
  dateOf,
  dayOf,
  daysOf,
  monthOf,
  parseTimestamp,
  yearOf,
} from '../../../engine/expressions/civil.ts';
import { batchOf, type Cell, column, evaluated, selected } from './evaluated.ts';

const micros = (text: string) => {
  const found = parseTimestamp(text);
  if (found === undefined) throw new Error(`${text} is no time`);
  return found;
};
const texts = [
  '2024-02-29 13:45:10.25',
  '1969-12-31 23:59:59.999999',
  '0001-01-01',
  '9999-12-31 23:00:00',
  null,
];
const batch = batchOf({
  ts: column(
    'timestamp',
    texts.map((text) => text && micros(text)),
  ),
  d: column('date', [19_782, -1, -719_162, 0, null]),
  s: column('int64', [1_709_214_310n, -1n, 0n, 253_402_297_200n, null]),
  f: column('float64', [0.25, -0.000001, Number.NaN, 1e6, null]),
});

test.each([
  ['year(ts)', [2024, 1969, 1, 9999, null]],
  ['month(ts)', [2, 12, 1, 12, null]],
  ['day(ts)', [29, 31, 1, 31, null]],
  ['hour(ts)', [13, 23, 0, 23, null]],
  ['day_of_week(ts)', [5, 4, 2, 6, null]],
  ['day_of_week(d)', [5, 4, 2, 5, null]],
  ['year(d)', [2024, 1969, 1, 1970, null]],
  [
    "cast(truncate(ts, 'month') as text)",
    ['2024-02-01 00:00:00', '1969-12-01 00:00:00', '0001-01-01 00:00:00', '9999-12-01 00:00:00', null],
  ],
  [
    "cast(date_trunc('week', ts) as text)",
    ['2024-02-26 00:00:00', '1969-12-29 00:00:00', '0001-01-01 00:00:00', '9999-12-27 00:00:00', null],
  ],
  ["cast(truncate(ts, 'quarter') as date)", [19_723, -92, -719_162, 2_932_805, null]],
  [
    "cast(truncate(ts, 'hour') as text)",
    ['2024-02-29 13:00:00', '1969-12-31 23:00:00', '0001-01-01 00:00:00', '9999-12-31 23:00:00', null],
  ],
  [
    "cast(truncate(ts, 'MINUTE') as text)",
    ['2024-02-29 13:45:00', '1969-12-31 23:59:00', '0001-01-01 00:00:00', '9999-12-31 23:00:00', null],
  ],
  ["truncate(d, 'year')", [19_723, -365, -719_162, 0, null]],
  [
    'cast(ts as text)',
    [
      '2024-02-29 13:45:10.25',
      '1969-12-31 23:59:59.999999',
      '0001-01-01 00:00:00',
      '9999-12-31 23:00:00',
      null,
    ],
  ],
  ['cast(d as text)', ['2024-02-29', '1969-12-31', '0001-01-01', '1970-01-01', null]],
  ['cast(ts as date) = d', [true, true, true, false, null]],
  ['ts > d', [true, true, false, true, null]],
  ["ts < '2024-03-01'", [true, true, true, false, null]],
  ["d < '2024-03-01'", [true, true, true, true, null]],
  ["d >= '1969-12-31 12:00:00'", [true, false, false, true, null]],
  ["d in ('2024-02-29', '1970-01-01')", [true, false, false, true, null]],
  [
    'timestamp_seconds(s)',
    [1_709_214_310n * 1_000_000n, -1_000_000n, 0n, 253_402_297_200n * 1_000_000n, null],
  ],
  ['timestamp_seconds(f)', [250_000n, -1n, null, 1_000_000_000_000n, null]],
  ['unix_seconds(ts)', [1_709_214_310n, -1n, -62_135_596_800n, 253_402_297_200n, null]],
  ['unix_seconds(d)', [1_709_164_800n, -86_400n, -62_135_596_800n, 0n, null]],
] satisfies [string, Cell[]][])('%s', (text, expected) => {
  expect(evaluated(text, batch)).toEqual(expected);
});

it('days and dates are inverse over all years of four digits', () => {
  let before = daysOf(0, 1, 1) - 1;
  for (let year = 0; year < 10_000; year += 7) {
    for (let month = 1; month <= 12; month++) {
      const days = daysOf(year, month, 1);
      const date = dateOf(days);
      expect([yearOf(date), monthOf(date), dayOf(date)]).toEqual([year, month, 1]);
      expect(days).toBeGreaterThan(before);
      expect(new Date(days * (DAY / 1000)).getUTCMonth()).toBe(month - 1);
      before = days;
    }
  }
});

it('texts of ISO are times, with their zones; others are none', () => {
  expect(micros('2024-01-02T03:04:05Z')).toBe(BigInt(Date.UTC(2024, 0, 2, 3, 4, 5)) * 1000n);
  expect(micros('2024-01-02 03:04+02:30')).toBe(BigInt(Date.UTC(2024, 0, 2, 0, 34)) * 1000n);
  expect(micros(' 2024-1-2 ')).toBe(BigInt(Date.UTC(2024, 0, 2)) * 1000n);
  expect(micros('2024-01-02 03:04:05.123456789')).toBe(
    BigInt(Date.UTC(2024, 0, 2, 3, 4, 5)) * 1000n + 123_456n,
  );
  for (const text of [
    '',
    '2024',
    '2024-02-30',
    '2024-13-01',
    '2024-01-01 24:00:00',
    '01/02/2024',
    '2024-01-01x',
  ])
    expect(parseTimestamp(text)).toBeUndefined();
});

it('a number is not compared with a date, and the error says how it could be', () => {
  expect(() => selected("s < '2024-01-01'", batch)).toThrow(/s is int64, '2024-01-01' is utf8/);
  expect(() => selected("ts < 'soon'", batch)).toThrow(/'soon' is utf8/);
  expect(() => evaluated('cast(s as timestamp)', batch)).toThrow(/timestampSeconds\(x\) makes timestamps/);
});
