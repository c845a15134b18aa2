import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Data,
  DateDay,
  Decimal,
  Field,
  Float32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Utf8,
} from 'apache-arrow';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ALS, col, collectList, type Dataset, first, functions, lit, max, min } from '../../../index.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const ROWS = 20_000;
let rows: Dataset;
let csv: Dataset;

const session = await cpuSession({ splitBytes: 20_000 });
beforeAll(async () => {
  const lines = Array.from(
    { length: ROWS },
    (_, i) => `${i},${i % 100},${(i % 7) / 2},${i % 5 === 0 ? '' : `t${i % 3}`}\n`,
  );
  writeFileSync(path('rows.csv'), `i,user,x,t\n${lines.join('')}`);
  csv = session.read.csv(path('rows.csv'), { types: { x: 'float64' } });
  // Tasks of so few bytes would give smaller row groups.
  const writer = await cpuSession({ workers: 1 });
  const read = writer.read.csv(path('rows.csv'), { types: { x: 'float64' } });
  await read.write.parquet(path('rows.parquet'), { rowGroupSize: 2000 });
  rows = session.read.parquet(path('rows.parquet'));
});

const numbers = async (dataset: Dataset, name = 'i') =>
  (await dataset.toArray()).map((row) => Number(row[name]));

describe('transformations', () => {
  it('choose, compute, rename and drop columns', async () => {
    const made = rows
      .withColumns({ y: col('x').times(2), user: col('user').plus(1) })
      .withColumnRenamed('t', 'text')
      .drop('x');
    expect((await made.schema()).fields.map(({ name }) => name)).toEqual(['i', 'user', 'text', 'y']);
    expect(await made.first()).toMatchObject({ user: 1n, text: null, y: 0 });
    expect((await made.toArray())[8]).toMatchObject({ i: 8, user: 9n, text: 't2', y: 1 });
    const selected = made.select('y', col('i').mod(2).as('odd'));
    expect((await selected.toArray())[3]).toEqual({ y: 3, odd: 1n });
  });

  it('keep the rows of which a condition is true, from Parquet and from ranges of text alike', async () => {
    const kept = Array.from({ length: ROWS }, (_, i) => i).filter((i) => (i % 7) / 2 >= 2.5 && i % 100 < 50);
    for (const dataset of [rows, csv])
      expect(await numbers(dataset.filter(col('x').ge(2.5)).where(col('user').lt(50)))).toEqual(kept);
    expect(await rows.filter(col('t').eq('t1').and(lit(null))).count()).toBe(0);
  });

  it('join rows of several inputs, by the names of their columns', async () => {
    const high = rows.filter(col('i').ge(ROWS - 2)).select('x', 'i');
    const both = rows
      .filter(col('i').lt(2))
      .select('i', 'x')
      .union(high, csv.filter(col('i').eq(7)).select('i', 'x'));
    expect(await numbers(both)).toEqual([0, 1, ROWS - 2, ROWS - 1, 7]);
    expect(await both.filter(col('i').gt(5)).count()).toBe(3);
    // The first input decides the order of columns.
    const [xi, ix] = [rows.select('x', 'i'), rows.select('i', 'x')];
    const sampled = await numbers(ix.sample(0.1, { seed: 3 }));
    expect(await numbers(ix.union(xi).sample(0.1, { seed: 3 }))).toEqual([...sampled, ...sampled]);
    await expect(rows.union(rows.drop('t')).count()).rejects.toThrow(
      /input 2 has 3 columns, and the first 4/,
    );
    await expect(rows.union(rows.cast({ x: 'utf8' })).count()).rejects.toThrow(/"x" is Utf8 in input 2/);
  });

  it('work on a column whose name is the empty text', async () => {
    const odd = rows.withColumnRenamed('t', '');
    const whole = ROWS - ROWS / 5;
    expect(await odd.filter(col('').isNotNull()).count()).toBe(whole);
    expect(await odd.dropNulls('').count()).toBe(whole);
    expect(await odd.groupBy('').count().count()).toBe(4);
    expect((await odd.orderBy(col('').desc()).first())?.['']).toBe('t2');
    expect(await odd.repartition(2, '').count()).toBe(ROWS);
    expect(await odd.select('i', '').join(odd.select('').distinct(), '').count()).toBe(whole);
    await odd.write.arrow(path('odd.arrow'));
    expect(await session.read.arrow(path('odd.arrow')).dropNulls('').count()).toBe(whole);
  });

  it('take the first rows, and read no more than they need', async () => {
    expect(await numbers(rows.limit(2500))).toEqual(Array.from({ length: 2500 }, (_, i) => i));
    expect(await numbers(csv.limit(1000).filter(col('i').ge(990)))).toHaveLength(10);
    expect(await rows.limit(0).count()).toBe(0);
    expect(() => rows.limit(-1)).toThrow(/limit takes a whole number of rows, got -1/);
  });

  it('sample rows by their values, whatever their order', async () => {
    const sampled = await numbers(rows.sample(0.1, { seed: 3 }));
    expect(sampled.length).toBeGreaterThan(1700);
    expect(sampled.length).toBeLessThan(2300);
    expect(await numbers(csv.sample(0.1, { seed: 3 }))).toEqual(sampled);
    const users = await numbers(rows.sample(0.5, { by: ['user'] }).select('user'), 'user');
    expect(users).toHaveLength(200 * new Set(users).size);
  });

  it('are read once by cache', async () => {
    const cached = csv.filter(col('user').lt(10)).cache();
    expect([await cached.count(), await cached.count()]).toEqual([2000, 2000]);
    writeFileSync(path('once.csv'), 'a\n1\n');
    const once = session.read.csv(path('once.csv')).cache();
    expect(await once.count()).toBe(1);
    rmSync(path('once.csv'));
    expect(await once.toArray()).toEqual([{ a: 1 }]);
  });
});

const vectorOf = (n: number) =>
  makeData({ type: new Float32(), length: 1, nullCount: 0, data: Float32Array.of(n) });

describe('actions', () => {
  it('describe, show and collect', async () => {
    const [i, , x, t] = await rows.describe();
    expect(i).toMatchObject({
      column: 'i',
      count: ROWS,
      nulls: 0,
      min: 0,
      max: ROWS - 1,
      mean: (ROWS - 1) / 2,
    });
    expect(x.stddev).toBeCloseTo(1, 2);
    expect(t).toMatchObject({ count: ROWS * 0.8, nulls: ROWS * 0.2, min: 't0', max: 't2' });
    expect((await rows.filter(col('i').lt(3)).collect()).numRows).toBe(3);
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    await rows.select('i', 't').show(2);
    expect(log.mock.calls[0][0]).toMatch(/│ i │ t +│[^]*│ 0 │ null │[^]*only the first 2 rows/);
    log.mockRestore();
  });

  it('give decimals, dates and texts as they are', async () => {
    const decimals = makeData({ type: new Decimal(2, 10), data: Uint32Array.of(440, 0, 0, 0, 125, 0, 0, 0) });
    const dates = makeData({ type: new DateDay(), data: Int32Array.of(19_782, -1) });
    const texts = makeData({
      type: new Utf8(),
      valueOffsets: Int32Array.of(0, 4, 5),
      data: Buffer.from('\ufeffxy'),
    });
    const fields = [
      new Field('d', decimals.type),
      new Field('day', dates.type),
      new Field('__proto__', texts.type),
    ];
    const children: Data[] = [decimals, dates, texts];
    const batch = new RecordBatch(
      new Schema(fields),
      makeData({ type: new Struct(fields), length: 2, nullCount: 0, children }),
    );
    const few = session.from([batch]);
    const expected = [
      Object.fromEntries([
        ['d', 4.4],
        ['day', new Date('2024-02-29')],
        ['__proto__', '\ufeffx'],
      ]),
      Object.fromEntries([
        ['d', 1.25],
        ['day', new Date('1969-12-31')],
        ['__proto__', 'y'],
      ]),
    ];
    expect(await few.toArray()).toEqual(expected);
    expect(await few.first()).toEqual(expected[0]);
    expect((await few.describe('d', 'day', '__proto__')).map(({ min, max }) => [min, max])).toEqual([
      [1.25, 4.4],
      [new Date('1969-12-31'), new Date('2024-02-29')],
      ['y', '\ufeffx'],
    ]);
    expect(
      await few.groupBy().agg(min('d').as('least'), max('d').as('most'), first('d').as('first')).toArray(),
    ).toEqual([{ least: 1.25, most: 4.4, first: 4.4 }]);
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    await few.show();
    expect(log.mock.calls[0][0]).toMatch(/│ 4\.40 │ 2024-02-29 │ \ufeffx[^]*│ 1\.25 │ 1969-12-31 │ y/);
    log.mockRestore();
  });
});

it('gives Dates of every unit and zone where Dates and times went in', async () => {
  const rows = [
    { id: 1, at: new Date('2023-11-05T08:40:00.123Z') },
    { id: 2, at: null },
    { id: 3, at: new Date(-1) },
  ];
  const times = session.fromRows(rows);
  expect(await times.toArray()).toEqual(rows);
  const ways = times.withColumns({
    micros: col('at').cast('timestamp'),
    zoned: functions.atZone(col('at'), 'America/Los_Angeles'),
    given: lit(rows[0].at),
  });
  const [first] = await ways.orderBy('id').toArray();
  expect(first).toEqual({ ...rows[0], micros: rows[0].at, zoned: rows[0].at, given: rows[0].at });
  const [listed] = await ways
    .groupBy()
    .agg(collectList('zoned').as('all'), max('micros').as('last'))
    .toArray();
  expect(listed).toEqual({ all: [rows[0].at, rows[2].at], last: rows[0].at });
  const given = session.fromRows([{ at: '2023-11-05T08:40:00.123456+01:00', day: new Date(-1) }], {
    types: { at: 'timestamp(UTC)', day: 'date' },
  });
  expect(await given.toArray()).toEqual([
    { at: new Date('2023-11-05T07:40:00.123Z'), day: new Date('1969-12-31') },
  ]);
  expect(await given.select(col('at').cast('utf8').as('at')).toArray()).toEqual([
    { at: '2023-11-05 07:40:00.123456+00' },
  ]);
});

describe('a filter of Parquet', () => {
  it('gives the rows of the range alone', async () => {
    const range = session.read.parquet(path('rows.parquet'), {
      filter: { column: 'i', min: 4990, max: 5003 },
    });
    expect(await numbers(range)).toEqual(Array.from({ length: 14 }, (_, i) => 4990 + i));
    expect(await range.explain()).toMatch(/within: i >= 4990, i <= 5003/);
    const above = session.read.parquet(path('rows.parquet'), { filter: col('x').ge(3) });
    expect(await above.count()).toBe(Math.floor(ROWS / 7));
  });
});

describe('errors', () => {
  it.each([
    ['filter', () => rows.filter(col('usr').gt(1)), /there is no column "usr". Did you mean user\?/],
    ['select', () => rows.select('usr'), /there is no column "usr"/],
    ['drop', () => rows.drop('usr'), /there is no column "usr" to drop. Did you mean user\?/],
    ['rename', () => rows.withColumnRenamed('usr', 'u'), /no column "usr" to rename/],
    ['twice', () => rows.withColumnRenamed('i', 'user'), /would have the column "user" twice/],
    ['type', () => rows.filter(col('x').plus(1)), /must be true or false/],
  ])('of %s come when the plan is run, without a stack for the user', async (_, make, message) => {
    await expect(make().count()).rejects.toThrow(message);
    await expect(make().explain()).rejects.toThrow(message);
  });

  it('of a cast name the row and the value, of ranges of text too', async () => {
    const lines = Array.from({ length: 9000 }, (_, i) => `${i === 8123 ? 'x8' : i},a\n`);
    writeFileSync(path('words.csv'), `word,other\n${lines.join('')}`);
    const words = session.read.csv(path('words.csv'), { header: true, types: { word: 'utf8' } });
    await expect(words.cast({ word: 'int32' }).count()).rejects.toThrow(
      /'x8' is no int32 .*words\.csv, .*8,?12[45]/,
    );
    expect(await words.cast({ word: 'int32' }, 'null').filter(col('word').isNull()).count()).toBe(1);
  });

  it('of columns of objects say that these are left out, and a warning does where all are read', async () => {
    const nested = session.fromRows([{ user: 1, tags: { a: 1 }, deep: [[1]], raw: new Uint8Array(2) }]);
    const why = 'since their values are objects, bytes, or lists of lists or objects: tags, deep, raw';
    await expect(nested.select('tags').count()).rejects.toThrow(
      `The columns are: user, and left out, ${why}`,
    );
    const texts: string[] = [];
    const found = await nested.toArray({ onEvent: (event) => 'text' in event && texts.push(event.text) });
    expect(found).toEqual([{ user: 1 }]);
    expect(texts).toEqual([`columns are left out, ${why}`]);
  });

  it('of lists name the row and the value', async () => {
    const mixed = session.fromRows([
      { user: 1, tags: [1, 2] },
      { user: 2, tags: 'a' },
    ]);
    await expect(mixed.toArray()).rejects.toThrow(
      /tags is the text "a", and row 1 has an array.*row 2|row 2.*tags is/,
    );
    const odd = session.fromRows([{ tags: [1, 'a'] }]);
    await expect(odd.toArray()).rejects.toThrow(
      'tags is an array, which List<Int32> of the first rows cannot hold',
    );
  });

  it('of a text for an expression say so', () => {
    expect(() => rows.filter('x > 1' as never)).toThrow(/Text in SQL's form is read by expr/);
  });
});

it('rows of objects have lists: of numbers, texts and times, empty, missing and with missing elements', async () => {
  const given = [
    { item: 1, words: [1, 2], tags: ['a', null, 'b'], vector: new Float32Array([0.5, 1]), big: [2n ** 40n] },
    { item: 2, words: [], tags: [], vector: [1, 2.5], big: null },
    { item: 3, words: null, tags: ['c'] },
  ];
  const data = session.fromRows(given);
  const types = (await data.schema()).fields.map(({ name, type }) => `${name} ${String(type)}`);
  expect(types).toEqual([
    'item Int32',
    'words List<Int32>',
    'tags List<Utf8>',
    'vector List<Float64>',
    'big List<Int64>',
  ]);
  const rowsFound = (await data.toArray()) as Record<string, unknown>[];
  const plain = (value: unknown) => (value === null ? null : Array.from(value as Iterable<unknown>));
  expect(rowsFound.map(({ words }) => plain(words))).toEqual([[1, 2], [], null]);
  expect(rowsFound.map(({ tags }) => plain(tags))).toEqual([['a', null, 'b'], [], ['c']]);
  expect(rowsFound.map(({ vector }) => plain(vector))).toEqual([[0.5, 1], [1, 2.5], null]);
  expect(await data.explode('tags').count()).toBe(4);
});

it('trains on what was computed, as on a file of it', async () => {
  const ratings = rows
    .withColumn('rating', functions.log1p(col('x').plus(1)))
    .withColumn('item', col('i').mod(37));
  const als = new ALS({ rank: 4, maxIter: 2, seed: 1 });
  const direct = await als.fit(ratings.filter(col('user').lt(60)));
  await ratings.filter(col('user').lt(60)).write.parquet(path('computed.parquet'));
  const read = await als.fit(session.read.parquet(path('computed.parquet')));
  expect(direct.training?.iterations.map(({ loss }) => loss)).toEqual(
    read.training?.iterations.map(({ loss }) => loss),
  );
  await expect(als.fit(ratings.filter(lit(false)))).rejects.toThrow(/no ratings are left to work on/);
});

describe('an optimized plan', () => {
  it('of a union says that a column may be null where one of its inputs says so', async () => {
    const schema = (nullable: boolean) => new Schema([new Field('n', new Float32(), nullable)]);
    const never = new RecordBatch(schema(false), new RecordBatch({ n: vectorOf(1) }).data);
    const empty = makeData({
      type: new Float32(),
      length: 1,
      nullCount: 1,
      nullBitmap: Uint8Array.of(0),
      data: Float32Array.of(0),
    });
    const may = new RecordBatch(schema(true), new RecordBatch({ n: empty }).data);
    const both = session.from([never]).union(session.from([may]));
    await both.write.parquet(path('union.parquet'));
    expect(await session.read.parquet(path('union.parquet')).toArray()).toEqual([{ n: 1 }, { n: null }]);
  });
});
