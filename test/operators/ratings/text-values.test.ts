/** Ratings and times that are not plain numbers. */
import {
  Bool,
  Date_,
  DateUnit,
  Dictionary,
  Int32,
  LargeUtf8,
  makeVector,
  Utf8,
  type Vector,
  vectorFromArray,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { numbersOfTexts, timesOfTexts } from '../../../operators/ratings/rows/columns.ts';
import { timeIn } from '../../../operators/ratings/rows/time-in.ts';
import { timeNumbers, unitsPerMillisecond } from '../../../operators/splits/time-split.ts';

const dataOf = (vector: Vector) => vector.data[0];

function refusedOf(read: (onRefused: (row: number, reason: string) => void) => Float64Array) {
  const refused: [number, string][] = [];
  return { values: [...read((row, reason) => refused.push([row, reason]))], refused };
}

describe('numbers as text', () => {
  const texts = ['4', ' 4.5 ', '-1e2', '.5', '+3.', 'True', 'false', null];

  it.each([
    ['utf8', new Utf8()],
    ['large utf8', new LargeUtf8()],
    ['a dictionary', new Dictionary(new Utf8(), new Int32())],
  ] as const)('are read from %s', (_of, type) => {
    const { values, refused } = refusedOf((onRefused) =>
      numbersOfTexts(dataOf(vectorFromArray(texts, type)), onRefused),
    );
    expect([values, refused]).toEqual([[4, 4.5, -100, 0.5, 3, 1, 0, Number.NaN], []]);
  });

  it('that are none are refused with their text', () => {
    const { values, refused } = refusedOf((onRefused) =>
      numbersOfTexts(
        dataOf(vectorFromArray(['4', '', 'good', '0x10', '1,5', 'NaN', 'y'.repeat(50)], new Utf8())),
        onRefused,
      ),
    );
    expect(values.slice(1).every(Number.isNaN)).toBe(true);
    expect(refused.map(([row]) => row)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(refused[1]).toEqual([2, '"good" is not a number']);
    expect(refused[5][1]).toBe(`"${'y'.repeat(40)}…" is not a number`);
  });

  it('are 1 and 0 for booleans', () => {
    expect([...numbersOfTexts(dataOf(vectorFromArray([true, false, null, true], new Bool())))]).toEqual([
      1,
      0,
      Number.NaN,
      1,
    ]);
  });
});

describe('times as text', () => {
  it.each([
    ['2024-05-31', Date.UTC(2024, 4, 31)],
    ['2024-05-31T12:30', Date.UTC(2024, 4, 31, 12, 30)],
    ['2024-05-31 12:30:15.250', Date.UTC(2024, 4, 31, 12, 30, 15, 250)],
    ['2024-05-31T12:30:15Z', Date.UTC(2024, 4, 31, 12, 30, 15)],
    ['2024-05-31T12:30:15+02:00', Date.UTC(2024, 4, 31, 10, 30, 15)],
    ['2024-05-31 12:30:15-0530', Date.UTC(2024, 4, 31, 18, 0, 15)],
    ['2024-05-31 12:30:15.5 UTC', Date.UTC(2024, 4, 31, 12, 30, 15, 500)],
    ['0099-12-31', -59_011_545_600_000],
    ['1600000000', 1.6e12],
    ['1600000000000', 1.6e12],
    ['1600000000000000', 1.6e12],
    ['1600000000000000000', 1.6e12],
  ])('%s is %d ms', (text, expected) => {
    expect(timeIn(text)).toBe(expected);
  });

  it('have microseconds, and an order within a millisecond', () => {
    expect(
      (timeIn('2024-05-31T12:30:15.000002Z') ?? 0) - (timeIn('2024-05-31T12:30:15.000001Z') ?? 0),
    ).toBeGreaterThan(0);
  });

  it.each(['31/05/2024', '2024-13-01', '2024-02-30', '2024-05-31T25:00', 'May 31, 2024', '', '2024'])(
    '%s is a time only where it is a number',
    (text) => {
      expect(timeIn(text)).toBe(text === '2024' ? 2024 : undefined);
    },
  );

  it('are refused with an example of a time', () => {
    const { refused } = refusedOf((onRefused) =>
      timesOfTexts(dataOf(vectorFromArray(['2024-05-31', '5/31/24', null], new Utf8())), onRefused),
    );
    expect(refused).toEqual([[1, '"5/31/24" is not a time such as 2024-05-31 or 2024-05-31T12:00:00Z']]);
  });
});

describe('dates', () => {
  it('are days or milliseconds, and a moment has a place among both', () => {
    const days = makeVector({ type: new Date_(DateUnit.DAY), data: Int32Array.of(0, 19_874) } as never);
    const moments = vectorFromArray([new Date(0), new Date('2024-05-31')], new Date_(DateUnit.MILLISECOND));
    for (const vector of [days, moments] as Vector[]) {
      const units = unitsPerMillisecond(vector.type) ?? Number.NaN;
      expect([...timeNumbers(dataOf(vector))]).toEqual([0, Date.UTC(2024, 4, 31) * units]);
    }
  });
});
