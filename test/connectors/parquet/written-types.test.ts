/** Every Arrow type that is written to Parquet, as DuckDB reads it: other programs do not read Arrow's own types in the footer. */
import {
  Binary,
  Bool,
  type Data,
  type DataType,
  DateDay,
  DateMillisecond,
  Decimal,
  Dictionary,
  DurationSecond,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float16,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  IntervalDayTime,
  IntervalYearMonth,
  LargeUtf8,
  List,
  makeData,
  Null,
  RecordBatch,
  Schema,
  Struct,
  TimeMicrosecond,
  TimeMillisecond,
  TimeNanosecond,
  TimeSecond,
  Timestamp,
  TimeUnit,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { isUuidField, uuidMetadata } from '../../../engine/values/value-texts.ts';
import { collect, context, duckRows, streamOf } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

/** Two rows, the second null, of fixed-width values. */
const fixed = (type: DataType, values: ArrayLike<number | bigint>): Data =>
  makeData({
    type: type as Int32,
    length: 2,
    nullCount: 1,
    nullBitmap: Uint8Array.of(1),
    data: values as unknown as Int32Array,
  });
const of = (type: DataType, value: unknown): Data => vectorFromArray([value, null], type).data[0];
const time = (unit: TimeUnit, zone: string | null, count: bigint) =>
  fixed(new Timestamp(unit, zone), BigInt64Array.of(count, 2n ** 63n - 1n));
const decimal = (bits: number, precision: number) => {
  const words = new Uint32Array(bits / 16).fill(0);
  words[0] = 125;
  return fixed(new Decimal(2, precision, bits), words);
};
const seconds = new List(new Field('item', new Timestamp(TimeUnit.SECOND)));
const dates = new Struct([new Field('d', new DateMillisecond()), new Field('t', new TimeSecond())]);
const NOON = 1_706_704_200n;
const stamp = '2024-01-31 12:30:00';
const uuid = Uint8Array.from({ length: 32 }, (_, i) => (i % 16) * 17);

const columns: readonly (readonly [name: string, data: Data, type: string, value: string])[] = [
  ['bool', of(new Bool(), true), 'BOOLEAN', 'true'],
  ['int8', of(new Int8(), -1), 'TINYINT', '-1'],
  ['int16', of(new Int16(), -1), 'SMALLINT', '-1'],
  ['int32', of(new Int32(), -1), 'INTEGER', '-1'],
  ['int64', of(new Int64(), -(2n ** 63n)), 'BIGINT', '-9223372036854775808'],
  ['uint8', of(new Uint8(), 255), 'UTINYINT', '255'],
  ['uint16', of(new Uint16(), 65_535), 'USMALLINT', '65535'],
  ['uint32', of(new Uint32(), 4_294_967_295), 'UINTEGER', '4294967295'],
  ['uint64', of(new Uint64(), 2n ** 64n - 1n), 'UBIGINT', '18446744073709551615'],
  ['float16', fixed(new Float16(), Uint16Array.of(0x3e00, 0)), 'FLOAT', '1.5'],
  ['float32', of(new Float32(), 1.5), 'FLOAT', '1.5'],
  ['float64', of(new Float64(), 0.1), 'DOUBLE', '0.1'],
  ['text', of(new Utf8(), 'é'), 'VARCHAR', 'é'],
  ['large text', of(new LargeUtf8(), 'é'), 'VARCHAR', 'é'],
  ['dictionary', of(new Dictionary(new Utf8(), new Int32()), 'é'), 'VARCHAR', 'é'],
  ['bytes', of(new Binary(), Uint8Array.of(65, 1)), 'BLOB', String.raw`A\x01`],
  ['2 bytes', fixed(new FixedSizeBinary(2), Uint8Array.of(65, 1, 0, 0)), 'BLOB', String.raw`A\x01`],
  ['hash', fixed(new FixedSizeBinary(16), new Uint8Array(32).fill(65)), 'BLOB', 'A'.repeat(16)],
  ['uuid', fixed(new FixedSizeBinary(16), uuid), 'UUID', '00112233-4455-6677-8899-aabbccddeeff'],
  ['decimal32', decimal(32, 9), 'DECIMAL(9,2)', '1.25'],
  ['decimal64', decimal(64, 18), 'DECIMAL(18,2)', '1.25'],
  ['decimal128', decimal(128, 38), 'DECIMAL(38,2)', '1.25'],
  ['date', fixed(new DateDay(), Int32Array.of(-1, 0)), 'DATE', '1969-12-31'],
  ['date64', fixed(new DateMillisecond(), BigInt64Array.of(-86_400_000n, 2n ** 62n)), 'DATE', '1969-12-31'],
  ['seconds', time(TimeUnit.SECOND, null, NOON), 'TIMESTAMP', stamp],
  [
    'seconds with a zone',
    time(TimeUnit.SECOND, 'Europe/Berlin', NOON),
    'TIMESTAMP WITH TIME ZONE',
    `${stamp}+00`,
  ],
  ['milliseconds', time(TimeUnit.MILLISECOND, null, NOON * 1000n), 'TIMESTAMP', stamp],
  ['microseconds', time(TimeUnit.MICROSECOND, null, NOON * 10n ** 6n), 'TIMESTAMP', stamp],
  [
    'microseconds of UTC',
    time(TimeUnit.MICROSECOND, 'UTC', NOON * 10n ** 6n),
    'TIMESTAMP WITH TIME ZONE',
    `${stamp}+00`,
  ],
  ['nanoseconds', time(TimeUnit.NANOSECOND, null, NOON * 10n ** 9n), 'TIMESTAMP_NS', stamp],
  ['time of seconds', fixed(new TimeSecond(), Int32Array.of(45_000, 2 ** 31 - 1)), 'TIME', '12:30:00'],
  ['time of milliseconds', fixed(new TimeMillisecond(), Int32Array.of(45_000_000, 0)), 'TIME', '12:30:00'],
  [
    'time of microseconds',
    fixed(new TimeMicrosecond(), BigInt64Array.of(45_000_000_000n, 0n)),
    'TIME',
    '12:30:00',
  ],
  [
    'time of nanoseconds',
    fixed(new TimeNanosecond(), BigInt64Array.of(45_000_000_000_000n, 0n)),
    'TIME_NS',
    '12:30:00',
  ],
  ['interval of months', fixed(new IntervalYearMonth(), Int32Array.of(14, 0)), 'INTERVAL', '1 year 2 months'],
  [
    'interval of days',
    fixed(new IntervalDayTime(), Int32Array.of(3, 1500, 0, 0)),
    'INTERVAL',
    '3 days 00:00:01.5',
  ],
  // Parquet has no type for durations.
  ['duration', fixed(new DurationSecond(), BigInt64Array.of(90n, 0n)), 'BIGINT', '90'],
  ['null', makeData({ type: new Null(), length: 2 }), '"NULL"', 'NULL'],
  ['list', of(seconds, [new Date(Number(NOON) * 1000)]), 'TIMESTAMP[]', `['${stamp}']`],
  [
    'struct',
    of(dates, { d: new Date(0), t: 45_000 }),
    'STRUCT(d DATE, t TIME)',
    "{'d': 1970-01-01, 't': '12:30:00'}",
  ],
  [
    'list of one size',
    makeData({
      type: new FixedSizeList(2, new Field('item', new Int32())),
      length: 2,
      nullCount: 1,
      nullBitmap: Uint8Array.of(1),
      child: vectorFromArray([1, 2, 3, 4], new Int32()).data[0],
    } as never) as Data,
    'INTEGER[]',
    '[1, 2]',
  ],
];

function batchOf(some: typeof columns): RecordBatch {
  const schema = new Schema(
    some.map(([name, { type }]) => new Field(name, type, true, name === 'uuid' ? uuidMetadata() : undefined)),
  );
  const children = some.map(([, data]) => data);
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: 2, nullCount: 0, children }),
  );
}

async function write(name: string, batch: RecordBatch): Promise<string> {
  const path = join(folder, name);
  await new ParquetSink(path).consume(streamOf(batch.schema, [batch]), context());
  return path;
}

it.each(columns)('%s', async (...column) => {
  const [name, , type, value] = column;
  const path = await write(`${name}.parquet`, batchOf([column]));
  const query = `SELECT typeof("${name}"), coalesce("${name}"::VARCHAR, 'NULL') FROM '${path}'`;
  expect(await duckRows(query)).toEqual([
    [type, value],
    [type, 'NULL'],
  ]);
});

it('UUIDs stay UUIDs when they are read and written again', async () => {
  const first = await write(
    'first.parquet',
    batchOf(columns.filter(([name]) => ['uuid', 'hash'].includes(name))),
  );
  const source = new ParquetSource(first);
  expect((await source.schema()).fields.map(isUuidField)).toEqual([false, true]);
  const stream = await source.execute(context());
  const again = await write('again.parquet', (await collect(stream))[0]);
  expect(await duckRows(`SELECT typeof(hash), typeof(uuid) FROM '${again}' LIMIT 1`)).toEqual([
    ['BLOB', 'UUID'],
  ]);
});

it('values that do not fit the stored unit are an error with the column', async () => {
  for (const [name, data] of [
    ['t', fixed(new Timestamp(TimeUnit.SECOND), BigInt64Array.of(2n ** 62n, 0n))],
    ['d', fixed(new DateMillisecond(), BigInt64Array.of(2n ** 62n, 0n))],
  ] as const)
    await expect(write(`${name}.parquet`, batchOf([[name, data, '', '']]))).rejects.toThrow(
      new RegExp(`Parquet cannot hold the value 4611686018427387904 of .*column "${name}"`),
    );
});
