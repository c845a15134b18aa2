import {
  Float32,
  Float64,
  Int32,
  Int64,
  RecordBatch,
  Schema,
  Field,
  Struct,
  Utf8,
  Bool,
  DateDay,
  List,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  makeData,
  type Data,
  type DataType,
} from 'apache-arrow';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gunzipSync } from 'node:zlib';
import { TextSink } from '../../../connectors/text/text-sink.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { context, duckRows } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readTable, table, writeText } from './text-testing.ts';

const folder = temporaryFolder();

const ratings = table([
  ['user', new Int32(), [1, 2, null]],
  ['item', new Utf8(), ['a,b', '', null]],
  ['rating', new Float32(), [0.1, 4, null]],
]);

describe('text', () => {
  test.each([
    ['ratings.csv', 'user,item,rating\n1,"a,b",0.1\n2,"",4.0\n,,\n'],
    ['ratings.tsv', 'user\titem\trating\n1\ta,b\t0.1\n2\t""\t4.0\n\t\t\n'],
    ['ratings.dat', '1::a,b::0.1\n2::::4.0\n::::\n'],
  ])('%s', async (name, text) => {
    const file = join(folder, name);
    const { rows, bytes, files } = await writeText(file, ratings.schema, [ratings]);
    expect(readFileSync(file, 'utf8')).toBe(text);
    expect({ rows, bytes, files }).toEqual({ rows: 3, bytes: Buffer.byteLength(text), files: 1 });
  });

  test('gzip by its name', async () => {
    const file = join(folder, 'ratings.csv.gz');
    const { bytes } = await writeText(file, ratings.schema, [ratings, ratings], { header: false });
    expect(gunzipSync(readFileSync(file)).toString()).toBe('1,"a,b",0.1\n2,"",4.0\n,,\n'.repeat(2));
    expect(bytes).toBe(readFileSync(file).length);
  });

  test('other types', async () => {
    const file = join(folder, 'types.csv');
    const batch = table([
      ['b', new Bool(), [true, false]],
      ['d', new DateDay(), [new Date('2020-02-29'), new Date('1969-12-31')]],
      ['t', new TimestampMillisecond('UTC'), [new Date('2020-02-29T01:02:03.004Z'), new Date(0)]],
      ['x', new Float64(), [-0, Number.NEGATIVE_INFINITY]],
      ['y', new Float64(), [1e300, 123456789012345680000]],
    ]);
    await writeText(file, batch.schema, [batch]);
    expect(readFileSync(file, 'utf8')).toBe(
      'b,d,t,x,y\ntrue,2020-02-29,2020-02-29T01:02:03.004Z,-0.0,1e+300\nfalse,1969-12-31,1970-01-01T00:00:00.000Z,-Infinity,123456789012345680000.0\n',
    );
  });

  test('times keep the digits of their unit; one that no calendar has is told with its place', async () => {
    const file = join(folder, 'times.csv');
    const times = (type: DataType, counts: bigint[]) =>
      makeData({
        type: type as TimestampMicrosecond,
        length: counts.length,
        data: BigInt64Array.from(counts),
      });
    const batchOf = (data: Data) => {
      const schema = new Schema([new Field('t', data.type, true)]);
      return new RecordBatch(
        schema,
        makeData({ type: new Struct(schema.fields), length: data.length, nullCount: 0, children: [data] }),
      );
    };
    const micros = batchOf(times(new TimestampMicrosecond('UTC'), [1582938123000004n, -1n]));
    await writeText(file, micros.schema, [micros]);
    expect(readFileSync(file, 'utf8')).toBe('t\n2020-02-29T01:02:03.000004Z\n1969-12-31T23:59:59.999999Z\n');
    const nanos = batchOf(times(new TimestampNanosecond(), [1582938123000000005n]));
    await writeText(file, nanos.schema, [nanos]);
    expect(readFileSync(file, 'utf8')).toBe('t\n2020-02-29T01:02:03.000000005\n');
    const damaged = batchOf(times(new TimestampMicrosecond(), [0n, -9217843686882148n * 1000n]));
    await expect(writeText(file, damaged.schema, [damaged])).rejects.toThrow(
      /the value cannot be written as text.*times\.csv, row 2, column "t"/,
    );
  });

  test('no rows: the header alone', async () => {
    const file = join(folder, 'none.csv');
    await writeText(file, ratings.schema, []);
    expect(readFileSync(file, 'utf8')).toBe('user,item,rating\n');
  });
});

describe('what cannot be written', () => {
  test('lists, and texts that hold "::"', async () => {
    const list = new Schema([new Field('features', new List(new Field('element', new Float32())), true)]);
    await expect(writeText(join(folder, 'list.csv'), list, [])).rejects.toThrow(
      /cannot hold List.*column "features"/,
    );
    for (const text of ['a::b', 'a:', 'a\nb']) {
      const batch = table([
        ['item', new Utf8(), ['fine', text]],
        ['n', new Int32(), [1, 2]],
      ]);
      const error = await writeText(join(folder, 'colons.dat'), batch.schema, [batch]).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(DataError);
      expect(String(error)).toMatch(/cannot be quoted \(.*colons\.dat, row 2, column "item"\)/);
    }
    expect(readdirSync(folder).filter((name) => name.includes('colons'))).toEqual([]);
  });

  test('over a file that is there, unless asked to; into a folder', async () => {
    const file = join(folder, 'there.csv');
    writeFileSync(file, 'mine');
    await expect(writeText(file, ratings.schema, [ratings], { overwrite: false })).rejects.toThrow(
      UsageError,
    );
    expect(readFileSync(file, 'utf8')).toBe('mine');
    await expect(writeText(folder, ratings.schema, [ratings])).rejects.toThrow(/is a folder, not a file/);
    expect(() => new TextSink('folder/')).toThrow(/names a folder/);
  });
});

describe('write, then read', () => {
  test('a text that begins with a byte order mark is not taken for one', async () => {
    const file = join(folder, 'mark.csv');
    const batch = table([['text', new Utf8(), ['\ufeffa', '\ufeff']]]);
    await writeText(file, batch.schema, [batch], { header: false });
    expect(readFileSync(file, 'utf8')).toBe('"\ufeffa"\n"\ufeff"\n');
    const bytes: Uint8Array[] = [];
    for await (const { data } of await new TextSource(file, { header: false }).execute(context()))
      bytes.push(data.children[0].values as Uint8Array);
    expect(Buffer.concat(bytes).toString('utf8')).toBe('\ufeffa\ufeff');
  });

  test('keeps the types of numbers without being told', async () => {
    const file = join(folder, 'typed.csv');
    const batch = table([
      ['a', new Int32(), [1, 2]],
      ['b', new Int64(), [2n ** 40n, -1n]],
      ['c', new Float64(), [1, 2]],
      ['d', new Utf8(), ['x', '1']],
    ]);
    await writeText(file, batch.schema, [batch]);
    expect((await readTable(new TextSource(file))).columns).toEqual([
      'a:Int32',
      'b:Int64',
      'c:Float64',
      'd:Utf8',
    ]);
  });
});

test('DuckDB reads what we write', async () => {
  const file = join(folder, 'for-duck.csv');
  const texts = Array.from({ length: 500 }, (_, i) => (i % 7 === 0 ? null : `te"xt ${i}\n, ü`));
  const batch = table([
    ['user', new Int32(), texts.map((_, i) => i * 3)],
    ['item', new Int64(), texts.map((_, i) => 2n ** 53n + BigInt(i))],
    ['rating', new Float32(), texts.map((_, i) => Math.fround(i / 7))],
    ['note', new Utf8(), texts],
  ]);
  await writeText(file, batch.schema, [batch]);
  const read = await duckRows(
    `SELECT * FROM read_csv('${file}', columns={'user': 'INTEGER', 'item': 'BIGINT', 'rating': 'FLOAT', 'note': 'VARCHAR'}, header=true)`,
  );
  expect(read).toEqual(texts.map((text, i) => [i * 3, 2n ** 53n + BigInt(i), Math.fround(i / 7), text]));
});
