import {
  type Data,
  Field,
  Float16,
  Int32,
  List,
  makeData,
  TimeNanosecond,
  TimestampNanosecond,
  vectorFromArray,
} from 'apache-arrow';
import { expect, it } from 'vitest';
import {
  folderName,
  folderTexts,
  javaText,
  readFolderName,
} from '../../../connectors/folders/folder-names.ts';
import { random } from '../parquet/parquet-testing.ts';

it.each<[string | null, string]>([
  ['Drama', 'c=Drama'],
  ['Sci-Fi/Horror', 'c=Sci-Fi%2FHorror'],
  ['a=b', 'c=a%3Db'],
  ['100%', 'c=100%25'],
  ['2020-01-01 12:30:00', 'c=2020-01-01 12%3A30%3A00'],
  ['"\'#*?\\{[]^', 'c=%22%27%23%2A%3F%5C%7B%5B%5D%5E'],
  ['a}|<> ~é€', 'c=a}|<> ~é€'],
  ['\0\n\x7f', 'c=%00%0A%7F'],
  ['.', 'c=.'],
  ['', 'c=__HIVE_DEFAULT_PARTITION__'],
  [null, 'c=__HIVE_DEFAULT_PARTITION__'],
  ['__HIVE_DEFAULT_PARTITION__', 'c=%5F_HIVE_DEFAULT_PARTITION__'],
])('%j names the folder %s, as in Spark', (value, name) => {
  expect(folderName('c', value)).toBe(name);
  expect(readFolderName(name)).toEqual({ column: 'c', value: value === '' ? null : value });
});

it('columns are encoded too', () => {
  expect(folderName('a/b=c', 'x')).toBe('a%2Fb%3Dc=x');
  expect(readFolderName('a%2Fb%3Dc=x')).toEqual({ column: 'a/b=c', value: 'x' });
  expect(folderName('.hidden', 'x')).toBe('%2Ehidden=x');
});

it('other folders are no values', () => {
  for (const name of ['data', '=x', '']) expect(readFolderName(name)).toBeUndefined();
  expect(readFolderName('a=')).toEqual({ column: 'a', value: '' });
  expect(readFolderName('a=50%')).toEqual({ column: 'a', value: '50%' });
});

it('names of random texts are read back', () => {
  const below = random(7);
  for (let i = 0; i < 2000; i++) {
    const text = String.fromCodePoint(
      ...Array.from({ length: 1 + below(6) }, () => (below(3) === 0 ? 0x1f600 + below(50) : below(260))),
    );
    const name = folderName(text, text);
    expect(name).not.toMatch(/[/\0]/);
    expect(readFolderName(name)).toEqual({ column: text, value: text });
  }
});

it.each<[number, string]>([
  [0, '0.0'],
  [-0, '0.0'],
  [1, '1.0'],
  [-2.5, '-2.5'],
  [1e-3, '0.001'],
  [9.99e-4, '9.99E-4'],
  [1234567, '1234567.0'],
  [1e7, '1.0E7'],
  [1.25e10, '1.25E10'],
  [1e300, '1.0E300'],
  [5e-324, '4.9E-324'],
  [NaN, 'NaN'],
  [Infinity, 'Infinity'],
  [-Infinity, '-Infinity'],
])('the double %d is written as %s', (value, text) => {
  // Java gives two digits of the least double, JavaScript one.
  expect(javaText(value)).toBe(text === '4.9E-324' ? '5.0E-324' : text);
});

const textOf = (data: Data) => folderTexts(data.type, 'c')(data)(0);

it('times have the digits that they need, in UTC', () => {
  const time = (count: bigint) =>
    textOf(makeData({ type: new TimestampNanosecond(), data: BigInt64Array.of(count) }));
  expect(time(0n)).toBe('1970-01-01 00:00:00');
  expect(time(-1n)).toBe('1969-12-31 23:59:59.999999999');
  expect(time(1_500_000_000n)).toBe('1970-01-01 00:00:01.5');
  expect(time(1_000_000_000_000_001_000n)).toBe('2001-09-09 01:46:40.000001');
  expect(textOf(makeData({ type: new TimeNanosecond(), data: BigInt64Array.of(3_723_000_000_000n) }))).toBe(
    '01:02:03',
  );
});

it('a float32 has its own digits, and a float16', () => {
  expect(textOf(vectorFromArray(Float32Array.of(0.1)).data[0])).toBe('0.1');
  expect(textOf(makeData({ type: new Float16(), data: Uint16Array.of(0x3e00) }))).toBe('1.5');
});

it('a list cannot name folders', () => {
  expect(() => folderTexts(new List(new Field('item', new Int32())), 'tags')).toThrow(
    'write: values of type List<Int32> cannot name folders (column "tags"). Partition by texts, numbers, dates, times or true and false',
  );
});
