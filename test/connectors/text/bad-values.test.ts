import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { TextSource } from '../../../connectors/text/text-source.ts';
import type { TextSourceOptions } from '../../../connectors/text/text-source.ts';
import type { ValueNeeds } from '../../../engine/stream/operator.ts';
import { placeOf } from '../../../engine/stream/stream.ts';
import { context } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readText } from './text-testing.ts';

const folder = temporaryFolder();
const read = (content: string, options: TextSourceOptions = {}, name?: string) =>
  readText(folder, content, options, name);
const needs: ValueNeeds = { numbers: ['rating'], takesFaults: true };
let files = 0;

/**
 * Type of the ratings, and each row with its line and the reason for its nulls, as a consumer of ratings sees
 * them.
 */
async function marked(content: string, options: TextSourceOptions = {}) {
  const file = join(folder, `marked-${files++}.csv`);
  writeFileSync(file, content);
  const source = new TextSource(file, options);
  const type = String((await source.schema(needs)).fields.find(({ name }) => name === 'rating')?.type);
  const rows: unknown[] = [];
  for await (const batch of await source.execute(context(), ['user', 'rating'], needs)) {
    for (let row = 0; row < batch.numRows; row++) {
      const place = placeOf(batch, row);
      rows.push([
        batch.getChildAt(0)?.get(row),
        batch.getChildAt(1)?.get(row),
        place?.line,
        ...(place?.fault === undefined ? [] : [place.fault]),
      ]);
    }
  }
  return { type, rows };
}

describe('texts that stand for null', () => {
  test('are nulls in columns of numbers, and texts in columns of texts', async () => {
    const tokens = ['NA', 'N/A', '#N/A', 'NULL', 'Null', 'null', 'None', '\\N', ''];
    const { columns, rows } = await read(
      `user,item,rating\n1,a,4.5\n${tokens.map((token) => `${token},${token},${token}\n`).join('')}`,
    );
    expect(columns).toEqual(['user:Int32', 'item:Utf8', 'rating:Float64']);
    expect(rows.slice(1)).toEqual(tokens.map((token) => [null, token === '' ? null : token, null]));
  });

  test('NaN is a null among whole numbers, and a number among floats', async () => {
    expect(await read('user,rating\n1,0.5\nNaN,NaN\nnan,nan\n')).toEqual({
      columns: ['user:Int32', 'rating:Float64'],
      rows: [
        [1, 0.5],
        [null, Number.NaN],
        [null, Number.NaN],
      ],
    });
    expect((await read('user,rating\n5000000000,NaN\nNaN,NaN\n')).columns).toEqual([
      'user:Int64',
      'rating:Float64',
    ]);
  });

  test('that are given count in every column, in the place of the usual ones', async () => {
    const { columns, rows } = await read('user,item,rating\n1,-,4\n-999,"-",NA\n2,b,-999\n', {
      nullValues: ['-', '-999'],
    });
    expect(columns).toEqual(['user:Int32', 'item:Utf8', 'rating:Utf8']);
    expect(rows).toEqual([
      [1, null, '4'],
      [null, '-', 'NA'],
      [2, 'b', null],
    ]);
    await expect(
      read('user,rating\n1,NA\n', { nullValues: ['-'], types: { rating: 'float64' } }),
    ).rejects.toThrow(/line 2: "NA" is not a number/);
    expect(() => new TextSource('x', { nullValues: 'NA' as unknown as string[] })).toThrow(
      /nullValues must be a list of texts/,
    );
  });
});

describe('decimal commas', () => {
  const rows = [
    [1, 4.5],
    [2, -0.25],
    [3, 5],
  ];

  test.each([
    ['semicolons', 'user;rating\n1;4,5\n2;-0,25\n3;5\n'],
    ['tabs', 'user\trating\n1\t4,5\n2\t-2,5e-1\n3\t5\n'],
    ['quotes between commas', 'user,rating\n1,"4,5"\n2,"-,25"\n3,"5,0"\n'],
  ])('between %s', async (_name, text) => {
    expect(await read(text, { decimalComma: true })).toEqual({
      columns: ['user:Int32', 'rating:Float64'],
      rows,
    });
  });

  test('make points something else, and need the option', async () => {
    expect((await read('user;rating\n1;4,5\n2;4.5\n', { decimalComma: true })).columns).toEqual([
      'user:Int32',
      'rating:Utf8',
    ]);
    expect((await read('user;rating\n1;1.234,5\n', { decimalComma: true })).columns).toEqual([
      'user:Int32',
      'rating:Utf8',
    ]);
    expect((await read('user;rating\n1;4,5\n')).columns).toEqual(['user:Int32', 'rating:Utf8']);
    expect(await marked('user;rating\n1;4,5\n')).toEqual({
      type: 'Float64',
      rows: [
        [
          1,
          null,
          2,
          'rating "4,5" is not a number (set decimalComma: true if the decimal separator is a comma)',
        ],
      ],
    });
  });
});

describe('a bad value, where a consumer takes faults', () => {
  test('in the first row, with a header and without', async () => {
    const rows = [
      [1, null, 2, 'rating "bad" is not a number'],
      [2, 4, 3],
      [3, 5, 4],
    ];
    expect(await marked('user,item,rating\n1,1,bad\n2,1,4\n3,1,5\n')).toEqual({ type: 'Float64', rows });
    expect((await marked('1,1,bad\n2,1,4\n3,1,5\n')).rows).toEqual(
      rows.map(([user, rating, line, ...fault]) => [user, rating, Number(line) - 1, ...fault]),
    );
  });

  test('late in a file, behind blank lines and quoted line ends', async () => {
    const long = 'b'.repeat(600);
    const many = Array.from({ length: 8000 }, (_, i) => `${i},"a\n${long}",${i % 5}\n`).join('');
    const { type, rows } = await marked(`user,item,rating\n\n${many}x,1,1\n7,1,four\n8,1,0.5\n`);
    expect(type).toBe('Float64');
    expect(rows.slice(-4)).toEqual([
      [7999, 4, 16_001],
      [null, 1, 16_003, 'user "x" is not a whole number'],
      [7, null, 16_004, 'rating "four" is not a number'],
      [8, 0.5, 16_005],
    ]);
    expect(rows).toHaveLength(8003);
  });

  test('and a row of another length', async () => {
    const { rows } = await marked('user,item,rating\n1,1,4\n2,1\n3,1,5,9\n4,1,3\n');
    expect(rows).toEqual([
      [1, 4, 2],
      [null, null, 3, 'the row has 2 fields, need 3: "2,1"'],
      [null, null, 4, 'the row has 4 fields, need 3: "3,1,5,9"'],
      [4, 3, 5],
    ]);
  });

  test('a column of nulls is numbers where they are needed, one of texts is not', async () => {
    expect((await marked('user,rating\n1,NA\n')).type).toBe('Float64');
    expect((await marked('user,item,rating\n')).type).toBe('Float64');
    expect((await marked('user,rating\n1,good\n2,bad\n')).type).toBe('Utf8');
  });
});

test('a header may have numbers if its names are usual, or if texts stand over half of the columns of numbers', async () => {
  expect((await read('userId,1995,1996\n1,2,3\n4,5,6\n')).columns).toEqual([
    'userId:Int32',
    '1995:Int32',
    '1996:Int32',
  ]);
  expect((await read('a,b,1996\n1,2,3\n4,5,6\n')).columns).toEqual(['a:Int32', 'b:Int32', '1996:Int32']);
  expect((await read('a,2,3\n1,2,3\n4,5,6\n')).rows).toHaveLength(3);
});
