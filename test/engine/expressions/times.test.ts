import { makeData, TimestampMicrosecond } from 'apache-arrow';
import { describe, expect, it, test } from 'vitest';
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
  expect(() => selected("ts < '2024-02-30'", batch)).toThrow(/'2024-02-30' is no time/);
  expect(() => evaluated('cast(s as timestamp)', batch)).toThrow(/timestampSeconds\(x\) makes timestamps/);
});

describe('times of a zone', () => {
  const zoned = (zone: string, ...times: readonly string[]) => {
    const data = BigInt64Array.from(times, micros);
    return batchOf({ x: makeData({ type: new TimestampMicrosecond(zone), length: data.length, data }) });
  };
  const [west, havana, apia] = ['America/Los_Angeles', 'America/Havana', 'Pacific/Apia'];

  // Clocks in Los Angeles go from 02:00 to 01:00 at 09:00Z, in Havana from 01:00 to 00:00 at 05:00Z (and in
  // spring from 00:00 to 01:00); Apia left out 2011-12-30.
  test.each([
    [west, '2023-11-05T08:40Z', "truncate(x, 'day')", '2023-11-05 00:00:00-07'],
    [west, '2023-11-05T08:40Z', "truncate(x, 'hour')", '2023-11-05 01:00:00-07'],
    [west, '2023-11-05T09:40Z', "date_trunc('hour', x)", '2023-11-05 01:00:00-08'],
    [west, '2023-11-05T08:40Z', "truncate(x, 'day', 'UTC')", '2023-11-04 17:00:00-07'],
    [west, '1966-05-01T08:40:00.5Z', "truncate(x, 'month')", '1966-05-01 00:00:00-07'],
    [west, '2023-11-05T07:30Z', "x + interval '1 day'", '2023-11-06 00:30:00-08'],
    [west, '2023-11-05T07:30Z', "x + interval '24 hours'", '2023-11-05 23:30:00-08'],
    [west, '2024-03-31T08:00Z', "x - interval '1 month'", '2024-02-29 01:00:00-08'],
    [west, '2023-11-05T08:40Z', "atZone(x, 'Asia/Kolkata')", '2023-11-05 14:10:00+05:30'],
    [west, '2023-11-05T08:40Z', 'coalesce(x, null)', '2023-11-05 01:40:00-07'],
    [havana, '2023-11-05T05:20Z', "truncate(x, 'day')", '2023-11-05 00:00:00-04'],
    [havana, '2023-11-05T05:20Z', "truncate(x, 'hour')", '2023-11-05 00:00:00-05'],
    [havana, '2023-03-12T20:00Z', "truncate(x, 'day')", '2023-03-12 01:00:00-04'],
    [havana, '2023-03-11T05:30Z', "dateAdd(x, 1, 'day')", '2023-03-12 01:30:00-04'],
    [apia, '2011-12-31T11:00Z', "truncate(x, 'week')", '2011-12-26 00:00:00-10'],
    // Months and weeks whose first midnight occurs twice, or never.
    [havana, '2015-11-20T12:00Z', "truncate(x, 'month')", '2015-11-01 00:00:00-04'],
    [havana, '2012-04-20T12:00Z', "truncate(x, 'month')", '2012-04-01 01:00:00-04'],
    ['Asia/Damascus', '1996-04-03T12:00Z', "truncate(x, 'week')", '1996-04-01 01:00:00+03'],
    ['Asia/Jerusalem', '2001-09-26T12:00Z', "truncate(x, 'week')", '2001-09-24 00:00:00+03'],
    ['America/Asuncion', '1979-10-20T12:00Z', "truncate(x, 'quarter')", '1979-10-01 01:00:00-03'],
    [west, '2023-11-05T08:40Z', "dateAdd(x, 1, 'day', 'UTC')", '2023-11-06 00:40:00-08'],
    [west, '2023-11-05T08:40Z', "dateAdd(x, 1, 'hour')", '2023-11-05 01:40:00-08'],
    [west, '2023-11-05T08:40Z', "dateAdd(x, 1, 'week')", '2023-11-12 01:40:00-08'],
    [west, '2023-11-05T08:40Z', "truncate(x, 'month', 'Asia/Kolkata')", '2023-10-31 11:30:00-07'],
    [west, '2023-11-05T08:40Z', 'x - x', '0'],
    [west, '2023-11-05T08:40Z', "x - truncate(x, 'day')", '6000'],
    [west, '2023-11-06T08:40Z', "x - truncate(x - interval '1 day', 'day')", '92400'],
    [west, '1850-01-01T08:00Z', "truncate(x, 'day')", '1850-01-01 00:00:00-07:52:58'],
    [west, '2023-11-05T08:40Z', 'hour(x)', '1'],
    [west, '2023-11-05T02:40Z', 'cast(x as date)', '2023-11-04'],
    [west, '2023-11-05T02:40Z', "day(x, 'UTC')", '5'],
    [west, '2023-11-05T02:40Z', "x < '2023-11-05'", 'true'],
    [west, '2023-11-05T02:40Z', "x - timestamp '2023-11-05 02:00:00'", '2400'],
  ])('%s %s: %s is %s', (zone, time, text, expected) => {
    const batch = zoned(zone, time);
    const made = `cast(${text} as text)`;
    expect(evaluated(made, batch)).toEqual([expected]);
    if (!/[+-]\d\d(:\d\d)*$/.test(expected) || !text.startsWith('truncate')) return;
    const [first] = evaluated(`unix_seconds(${text})`, batch);
    expect(Number(first)).toBeLessThanOrEqual(Date.parse(time.replace('.5', '')) / 1000);
  });

  it('an unknown zone or unit is named', () => {
    const batch = zoned(west, '2023-11-05T08:40Z');
    expect(() => evaluated("truncate(x, 'day', 'Amerika')", batch)).toThrow(/no time zone 'Amerika'/);
    expect(() => evaluated("truncate(x, 'dya')", batch)).toThrow(/'dya' is no unit of times/);
    expect(() => evaluated("dateAdd(cast(x as date), 1, 'hour')", batch)).toThrow(
      /'hour' is no unit of dates/,
    );
    const broken = zoned('Nowhere/Else', '2023-11-05T08:40Z');
    expect(evaluated('x is null', broken)).toEqual([false]);
    expect(() => evaluated('hour(x)', broken)).toThrow(/no time zone 'Nowhere\/Else'/);
  });
});
