/** Columns of times, UUIDs and bytes in operators. */
import {
  Binary,
  type Data,
  DateDay,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Int32,
  List,
  makeData,
  Null,
  RecordBatch,
  Schema,
  Struct,
  TimeMicrosecond,
  Timestamp,
  TimeUnit,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { takeData } from '../../../engine/stream/take-data.ts';
import { col, type Dataset, functions, lit, max, min, minBy, rowNumber, when } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const session = await cpuSession({ workers: 1 });

function rowsOf(columns: Readonly<Record<string, Data>>) {
  const fields = Object.entries(columns).map(([name, { type }]) => new Field(name, type, true));
  const children = Object.values(columns);
  const { length } = children[0];
  return session.from([
    new RecordBatch(
      new Schema(fields),
      makeData({ type: new Struct(fields), length, nullCount: 0, children }),
    ),
  ]);
}

const ROWS = 400;
const numbers = Array.from({ length: ROWS }, (_, i) => i);
const uuids = makeData({
  type: new FixedSizeBinary(16),
  length: ROWS,
  nullCount: 0,
  data: Uint8Array.from({ length: 16 * ROWS }, (_, i) => (i % 16 < 2 ? (i >> 4) >> (8 * (i % 16)) : 7)),
});
const texts = vectorFromArray(
  numbers.map((i) => {
    const bytes = [i & 255, i >> 8].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return `${bytes}0707-0707-0707-0707-070707070707`;
  }),
  new Utf8(),
).data[0];
const times = (unit: TimeUnit, zone: string | null, counts = numbers.map(BigInt)) =>
  makeData({ type: new Timestamp(unit, zone), length: counts.length, data: BigInt64Array.from(counts) });
const ids = vectorFromArray(numbers, new Int32()).data[0];

describe('UUIDs', () => {
  it('are sorted as their texts, also by windows', async () => {
    const id = takeData(
      uuids,
      Uint32Array.from(numbers, (i) => (i * 7) % ROWS),
    );
    const rows = rowsOf({ id, row: ids });
    const found = async (made: Dataset) => (await made.select('id').toArray()).map((one) => one.id);
    const sorted = await found(rows.cast({ id: 'utf8' }).orderBy('id'));
    expect(await found(rows.orderBy('id'))).toEqual(sorted);
    expect(await found(rows.orderBy(col('id').desc()))).toEqual(sorted.toReversed());
    const numbered = rows.withColumn('n', rowNumber().over({ orderBy: 'id' })).orderBy('n');
    expect(await found(numbered)).toEqual(sorted);
    const ends = await rows.groupBy().agg(min('id').as('least'), max('id').as('most')).toArray();
    expect(ends).toEqual([{ least: sorted[0], most: sorted[ROWS - 1] }]);
  });

  it('are joined with their text, and compared with it', async () => {
    const [stored, written] = [rowsOf({ id: uuids, row: ids }), rowsOf({ id: texts, other: ids })];
    for (const joined of [stored.join(written, 'id'), written.join(stored, 'id')]) {
      const found = await joined.toArray();
      expect(found).toHaveLength(ROWS);
      expect(found.every(({ row, other }) => row === other)).toBe(true);
    }
    const one = await stored.filter(col('id').eq('05010707-0707-0707-0707-070707070707')).toArray();
    expect(one).toEqual([{ id: '05010707-0707-0707-0707-070707070707', row: 261 }]);
    expect(await stored.join(written.cast({ id: 'utf8' }), 'id', 'semi').count()).toBe(ROWS);
    expect(await stored.cast({ id: 'utf8' }).join(written, 'id', 'anti').count()).toBe(0);
    await expect(stored.join(rowsOf({ id: ids }), 'id').count()).rejects.toThrow(/FixedSizeBinary.*Int32/);
  });
});

it('explode gives a row for each element of a list, in order', async () => {
  const lists = [['a', 'b'], [], null, [null, 'é'], ['a']];
  const g = vectorFromArray(lists, new List(new Field('item', new Utf8(), true))).data[0];
  const i = vectorFromArray([1, 2, 3, 4, 5], new Int32()).data[0];
  const batch = new RecordBatch({ i, g });
  const expected = [
    { i: 1, g: 'a' },
    { i: 1, g: 'b' },
    { i: 4, g: null },
    { i: 4, g: 'é' },
    { i: 5, g: 'a' },
  ];
  const rows = session.from([batch.slice(0, 1), batch.slice(1, 4), batch.slice(4)]).explode('g');
  expect(await rows.toArray()).toEqual(expected);
  expect(await rows.filter(col('g').eq('a')).select('i').toArray()).toEqual([{ i: 1 }, { i: 5 }]);
  const kept = session.from([batch.slice(0, 1), batch.slice(1, 4), batch.slice(4)]);
  const empty = [2, 3].map((own) => ({ i: own, g: null }));
  expect(await kept.explode('g', { keepEmpty: true }).toArray()).toEqual(expected.toSpliced(2, 0, ...empty));
  expect(await rows.limit(2).count()).toBe(2);
  expect(await rows.select('i').count()).toBe(5);
  const pairs = makeData({
    type: new FixedSizeList(2, new Field('item', new Int32(), true)),
    length: 2,
    nullCount: 0,
    child: vectorFromArray([1, 2, 3, 4], new Int32()).data[0],
  });
  expect(await rowsOf({ pairs }).explode('pairs').toArray()).toEqual([1, 2, 3, 4].map((x) => ({ pairs: x })));
  const file = join(temporaryFolder(), 'lists.parquet');
  await session.from([batch]).write.parquet(file);
  expect(await session.read.parquet(file).explode('g').toArray()).toEqual(expected);
  await expect(rows.explode('g').count()).rejects.toThrow(/explode takes a column of lists, and "g" is Utf8/);
  await expect(
    rows
      .groupBy()
      .agg(minBy('i', functions.split(col('g'), ',')))
      .count(),
  ).rejects.toThrow(/minBy takes no values of type List</);
});

describe('a sample', () => {
  const columns: readonly (readonly [string, Data])[] = [
    ['timestamps', times(TimeUnit.NANOSECOND, 'UTC')],
    ['dates', makeData({ type: new DateDay(), length: ROWS, data: Int32Array.from(numbers) })],
    [
      'times',
      makeData({ type: new TimeMicrosecond(), length: ROWS, data: BigInt64Array.from(numbers, BigInt) }),
    ],
    ['UUIDs', uuids],
    [
      'bytes',
      vectorFromArray(
        numbers.map((i) => Uint8Array.of(i, i >> 8)),
        new Binary(),
      ).data[0],
    ],
    [
      'three bytes',
      makeData({
        type: new FixedSizeBinary(3),
        length: ROWS,
        nullCount: 0,
        data: Uint8Array.from({ length: 3 * ROWS }, (_, i) =>
          i % 3 < 2 ? Math.floor(i / 3) >> (8 * (i % 3)) : 0,
        ),
      }),
    ],
  ];

  it.each(columns)('of %s has about its share of rows, the same ones again', async (_, x) => {
    const sample = (rows: ReturnType<typeof rowsOf>) => rows.sample(0.25, { seed: 1, by: ['x'] }).toArray();
    const found = await sample(rowsOf({ x, i: ids }));
    expect(found.length).toBeGreaterThan(ROWS / 8);
    expect(found.length).toBeLessThan(ROWS / 2);
    expect(await sample(rowsOf({ x, i: ids }))).toEqual(found);
  });

  it('of a column of nulls keeps or drops them together', async () => {
    const nulls = makeData({ type: new Null(), length: ROWS });
    expect([0, ROWS]).toContain(await rowsOf({ x: nulls }).sample(0.5).count());
  });
});

describe('computed times', () => {
  const berlin = times(TimeUnit.MILLISECOND, 'Europe/Berlin', [5_400_000n, 0n]);
  const utc = times(TimeUnit.MICROSECOND, 'UTC', [5_400_000_000n, 1n]);
  const naive = times(TimeUnit.MICROSECOND, null, [5_400_000_000n, 2n]);
  const { coalesce, truncate, greatest } = functions;

  it('keep the time zone of their columns', async () => {
    const rows = rowsOf({ berlin, utc, naive }).withColumns({
      hour: truncate(col('berlin'), 'hour'),
      filled: coalesce(col('berlin'), lit('2024-01-01').cast('timestamp')),
      cast: col('berlin').cast('timestamp'),
      chosen: when(col('naive').gt('1980-01-01'), col('utc')).otherwise(col('naive')),
      mixed: greatest(col('berlin'), col('utc')),
      plain: truncate(col('naive'), 'hour'),
    });
    const { fields } = await rows.schema();
    expect(Object.fromEntries(fields.slice(3).map(({ name, type }) => [name, String(type)]))).toEqual({
      hour: 'Timestamp<MICROSECOND, Europe/Berlin>',
      filled: 'Timestamp<MICROSECOND, Europe/Berlin>',
      cast: 'Timestamp<MICROSECOND, Europe/Berlin>',
      chosen: 'Timestamp<MICROSECOND, UTC>',
      mixed: 'Timestamp<MICROSECOND, UTC>',
      plain: 'Timestamp<MICROSECOND>',
    });
    for await (const batch of await rows.stream())
      expect(batch.data.children.map(({ type }) => String(type))).toEqual(
        fields.map(({ type }) => String(type)),
      );
    expect(await rows.select('hour', 'mixed').first()).toEqual({
      hour: new Date(3_600_000),
      mixed: new Date(5_400_000),
    });
    const most = rows.groupBy().agg(max(truncate(col('berlin'), 'hour')).as('most'));
    expect(String((await most.schema()).fields[0].type)).toBe('Timestamp<MICROSECOND, Europe/Berlin>');
  });

  it('are joined by the time, whatever their zone and unit', async () => {
    const [left, right] = [rowsOf({ t: berlin }), rowsOf({ t: utc })];
    expect(await left.join(right, 't').toArray()).toEqual([{ t: new Date(5_400_000) }]);
    expect(await right.join(rowsOf({ t: naive }), 't').toArray()).toEqual([{ t: new Date(5_400_000) }]);
  });
});
