import {
  Binary,
  type DataType,
  DateDay,
  DateMillisecond,
  Decimal,
  DenseUnion,
  Dictionary,
  DurationMillisecond,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float16,
  Float32,
  Int32,
  Int64,
  IntervalDayTime,
  IntervalMonthDayNano,
  IntervalYearMonth,
  List,
  makeData,
  makeVector,
  Map_,
  Null,
  Schema,
  Struct,
  TimeMicrosecond,
  TimeSecond,
  Timestamp,
  TimeUnit,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { plainRows, plainValues, readableStyle } from '../../engine/values/plain-values.ts';
import { nullableTexts } from '../../engine/values/value-texts.ts';

/** A decimal of `words` 32-bit words. */
function decimals(values: readonly bigint[], scale: number, words: number): Data {
  const data = new Uint32Array(values.length * words);
  values.forEach((value, row) => {
    for (let word = 0; word < words; word++)
      data[row * words + word] = Number(BigInt.asUintN(32, value >> BigInt(32 * word)));
  });
  const type = new Decimal(scale, 9 * words, 32 * words);
  return makeData({ type, length: values.length, nullCount: 0, data });
}

const fixed = (type: DataType, data: ArrayLike<number | bigint>, length = data.length): Data =>
  makeData({ type: type as Int32, length, nullCount: 0, data: data as unknown as Int32Array });

const of = (type: DataType, values: readonly unknown[]): Data => vectorFromArray(values, type).data[0];
const uuid = Uint8Array.from({ length: 16 }, (_, i) => i * 17);
const union = makeData({
  type: new DenseUnion([3, 7], [new Field('n', new Int32()), new Field('t', new Utf8())]),
  length: 3,
  typeIds: Int8Array.of(7, 3, 7),
  valueOffsets: Int32Array.of(1, 0, 0),
  children: [of(new Int32(), [5]), of(new Utf8(), ['a', '\ufeffb'])],
} as never) as Data;
const map = new Map_(
  new Field(
    'entries',
    new Struct([new Field('key', new Utf8(), false), new Field('value', new Int32(), true)]),
    false,
  ) as never,
);
const digits38 = 12345678901234567890123456789012345678n;

/** Timestamps of one zone, in seconds: the column, its values and texts. */
function zoned(times: readonly (readonly [zone: string, seconds: bigint, text: string])[]) {
  const seconds = times.map(([, time]) => time);
  return [
    fixed(new Timestamp(TimeUnit.SECOND, times[0][0]), BigInt64Array.from(seconds)),
    seconds.map((time) => new Date(Number(time) * 1000)),
    times.map(([, , text]) => text),
  ] as const;
}

const cases: readonly (readonly [name: string, data: Data, values: unknown[], texts: string[]])[] = [
  ['decimal', decimals([440n, -1n, 0n], 2, 4), [4.4, -0.01, 0], ['4.40', '-0.01', '0.00']],
  ['decimal32', decimals([-125n], 2, 1), [-1.25], ['-1.25']],
  ['decimal64', decimals([-125n], 2, 2), [-1.25], ['-1.25']],
  ['decimal256', decimals([-125n, 7n], 2, 8), [-1.25, 0.07], ['-1.25', '0.07']],
  [
    'decimals that no float64 holds',
    decimals([digits38, 2n ** 53n + 1n, 12345678901234567n], 3, 4),
    ['12345678901234567890123456789012345.678', '9007199254740.993', '12345678901234.567'],
    ['12345678901234567890123456789012345.678', '9007199254740.993', '12345678901234.567'],
  ],
  ['decimals of a negative scale', decimals([12n], -3, 4), [12_000], ['12000']],
  ['date', of(new DateDay(), [new Date('2024-02-29')]), [new Date(1709164800000)], ['2024-02-29']],
  [
    'dates of other centuries',
    fixed(new DateDay(), Int32Array.of(-719_162, 2_932_897, -719_529)),
    [-62_135_596_800_000, 253_402_300_800_000, -62_167_305_600_000].map((time) => new Date(time)),
    ['0001-01-01', '10000-01-01', '-0001-12-31'],
  ],
  [
    'date64',
    fixed(new DateMillisecond(), BigInt64Array.of(-86_400_000n)),
    [new Date(-86_400_000)],
    ['1969-12-31'],
  ],
  [
    'timestamps',
    fixed(new Timestamp(TimeUnit.MICROSECOND, null), BigInt64Array.of(1706704200250000n, -1n)),
    [new Date(1706704200250), new Date(-1)],
    ['2024-01-31T12:30:00.25', '1969-12-31T23:59:59.999999'],
  ],
  [
    'timestamps of seconds with a zone',
    fixed(new Timestamp(TimeUnit.SECOND, 'Europe/Berlin'), BigInt64Array.of(1706704200n)),
    [new Date(1706704200000)],
    ['2024-01-31T13:30:00+01:00'],
  ],
  [
    'timestamps of the hour that occurs twice',
    ...zoned([
      ['America/Los_Angeles', 1699174800n, '2023-11-05T01:00:00-08:00'],
      ['America/Los_Angeles', 1699171200n, '2023-11-05T01:00:00-07:00'],
    ]),
  ],
  ['timestamps of UTC', ...zoned([['UTC', 1706704200n, '2024-01-31T12:30:00Z']])],
  ['timestamps of half an hour', ...zoned([['+05:30', 0n, '1970-01-01T05:30:00+05:30']])],
  ['timestamps of a zone that is not known', ...zoned([['Mars/Olympus', 0n, '1970-01-01T00:00:00Z']])],
  [
    'times',
    fixed(new TimeMicrosecond(), BigInt64Array.of(45_000_000_005n)),
    [45000000.005],
    ['12:30:00.000005'],
  ],
  ['times of seconds', fixed(new TimeSecond(), Int32Array.of(86_399)), [86_399_000], ['23:59:59']],
  [
    'durations',
    fixed(new DurationMillisecond(), BigInt64Array.of(93784500n, -1000n)),
    [93784500, -1000],
    ['1 day 02:03:04.5', '-00:00:01'],
  ],
  [
    'intervals of months',
    fixed(new IntervalYearMonth(), Int32Array.of(14, -1, 0)),
    ...same(['1 year 2 months', '-1 month', '00:00:00']),
  ],
  [
    'intervals of days',
    fixed(new IntervalDayTime(), Int32Array.of(3, 1500), 1),
    ...same(['3 days 00:00:01.5']),
  ],
  [
    'intervals of months, days and nanoseconds',
    fixed(new IntervalMonthDayNano(), Int32Array.of(1, 2, -1, -1), 1),
    ...same(['1 month 2 days -00:00:00.000000001']),
  ],
  ['UUIDs', fixed(new FixedSizeBinary(16), uuid, 1), ...same(['00112233-4455-6677-8899-aabbccddeeff'])],
  ['bytes', of(new Binary(), [Uint8Array.of(222, 173)]), [Uint8Array.of(222, 173)], ['0xdead']],
  [
    'bytes of one width',
    fixed(new FixedSizeBinary(2), Uint8Array.of(1, 2), 1),
    [Uint8Array.of(1, 2)],
    ['0x0102'],
  ],
  ['a text with a byte order mark', of(new Utf8(), ['\ufeffx', '']), ...same(['\ufeffx', ''])],
  ['float16', fixed(new Float16(), Uint16Array.of(0x3e00)), [1.5], ['1.5']],
  ['float32', fixed(new Float32(), Float32Array.of(0.1)), [Math.fround(0.1)], ['0.1']],
  ['int64', fixed(new Int64(), BigInt64Array.of(-(2n ** 63n))), [-(2n ** 63n)], ['-9223372036854775808']],
  [
    'dictionaries',
    of(new Dictionary(new Utf8(), new Int32()), ['\ufeffa', 'b', '\ufeffa']),
    ...same(['\ufeffa', 'b', '\ufeffa']),
  ],
  ['null', makeData({ type: new Null(), length: 1 }), [null], ['null']],
  ['lists', of(new List(new Field('x', new Int32())), [[1, null], []]), [[1, null], []], ['[1, null]', '[]']],
  [
    'lists of one size',
    makeData({
      type: new FixedSizeList(2, new Field('x', new Float32())),
      length: 2,
      nullCount: 0,
      child: of(new Float32(), [1, 2, 3, 4]),
    } as never) as Data,
    [
      [1, 2],
      [3, 4],
    ],
    ['[1, 2]', '[3, 4]'],
  ],
  [
    'structs',
    of(new Struct([new Field('__proto__', new Int32()), new Field('b', new Utf8())]), [
      JSON.parse('{"__proto__": 5, "b": "x"}'),
    ]),
    [JSON.parse('{"__proto__": 5, "b": "x"}')],
    ['{__proto__: 5, b: x}'],
  ],
  ['maps', of(map, [{ k: 1, l: 2 }]), [{ k: 1, l: 2 }], ['{k: 1, l: 2}']],
  ['unions', union, ...same(['\ufeffb', 5, 'a'])],
];

function same(values: readonly unknown[]): [unknown[], string[]] {
  return [[...values], values.map(String)];
}

describe('values of Arrow as JavaScript and as text', () => {
  it.each(cases)('%s', (_, data, values, texts) => {
    const [valueOf, textOf] = [plainValues(data), nullableTexts(data, readableStyle)];
    const rows = [...texts.keys()];
    expect(rows.map(valueOf)).toEqual(values);
    expect(rows.map(textOf)).toEqual(texts);
  });

  it.each(cases)('%s, from a row on', (_, data, values, texts) => {
    const sliced = data.slice(texts.length - 1, 1);
    expect(plainValues(sliced)(0)).toEqual(values.at(-1));
    expect(nullableTexts(sliced, readableStyle)(0)).toBe(texts.at(-1));
  });

  it('nulls, in columns and in the entries of dictionaries', () => {
    const dictionary = makeVector({
      type: new Utf8(),
      length: 2,
      nullCount: 1,
      nullBitmap: Uint8Array.of(1),
      valueOffsets: Int32Array.of(0, 1, 1),
      data: Buffer.from('a'),
    } as never);
    const codes = makeData({
      type: new Dictionary(new Utf8(), new Int32()),
      length: 3,
      nullCount: 1,
      nullBitmap: Uint8Array.of(3),
      data: Int32Array.of(0, 1, 0),
      dictionary,
    } as never) as Data;
    for (const data of [codes, of(new Utf8(), ['a', null, null])]) {
      expect([0, 1, 2].map(plainValues(data))).toEqual(['a', null, null]);
      expect([0, 1, 2].map(nullableTexts(data, readableStyle))).toEqual(['a', 'null', 'null']);
    }
  });

  it('rows have a column named __proto__', () => {
    const schema = new Schema([new Field('__proto__', new Int32()), new Field('a', new Int32())]);
    const row = plainRows(schema, [of(new Int32(), [1]), of(new Int32(), [2])])(0);
    expect(Object.entries(row)).toEqual([
      ['__proto__', 1],
      ['a', 2],
    ]);
  });
});
