import { util } from 'apache-arrow';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { readRowGroups } from '../../../connectors/parquet/parquet-source.ts';
import { structIn, structsIn, thrift } from '../../../connectors/parquet/write/thrift.ts';
import { CancelledError } from '../../../engine/errors.ts';
import type { Bound } from '../../../engine/expressions/expression.ts';
import { originOf } from '../../../engine/stream/stream.ts';
import {
  arrowRows,
  collect,
  context,
  duckdb,
  duckRows,
  editFooter,
  goldenFolder,
  plain,
} from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

async function copy(query: string, to: string, options = ''): Promise<void> {
  await (await duckdb()).run(`COPY (${query}) TO '${path(to)}' (FORMAT parquet${options})`);
}

const ratings = (rows: number, from = 0) =>
  `SELECT (i % 97)::INTEGER AS "user", (i * 7 % 53)::INTEGER AS item, (i % 10)::FLOAT AS rating FROM range(${from}, ${from + rows}) t(i)`;

beforeAll(async () => {
  await copy(ratings(10000), 'big.parquet', ', ROW_GROUP_SIZE 2048');
  await (
    await duckdb()
  ).run(
    `COPY (SELECT *, 2000 + item % 3 AS year, CASE WHEN item % 2 = 0 THEN 'a b/ä' ELSE NULL END AS place FROM (${ratings(500)})) TO '${path('hive')}' (FORMAT parquet, PARTITION_BY (year, place))`,
  );
});

test('schema and statistics come from the footers alone', async () => {
  const source = new ParquetSource(path('big.parquet'));
  expect(String(await source.schema())).toBe(
    'Schema<{ 0: user: Int32, 1: item: Int32, 2: rating: Float32 }>',
  );
  expect(await source.statistics(context())).toMatchObject({ rows: 10000, files: 1 });
  expect(source.describe()).toEqual({ paths: [path('big.parquet')] });
});

/** Written by pyarrow with INT96 and without Arrow's types, as Spark writes: ts 9999-12-31T01:02:03.456789, null, year 1. */
const INT96 =
  'UEFSMRUAFTwVPCwVBhUAFQYVBhwAAAACAAAAAwUIulHvYgMAACz+UQAAAAAAAAAAAFJEGgAVABUyFTIsFQYVABUGFQYcAAAAAgAAAAYAAwAAAAMTAAAAAAAAAAAALP5RABUEGVw1ABgGc2NoZW1hFQQAFQYlAhgCdHMANQIYAWwVAhUGTDwAAAA1BBgEbGlzdBUCABUGJQIYB2VsZW1lbnQAFgYZHBksJgAcFQYZJQYAGRgCdHMVABYGFmIWYiYISRwVABUAFQIAPCkGGSYCBAAAACYAHBUGGSUGABk4AWwEbGlzdAdlbGVtZW50FQAWBhZYFlgmakkcFQAVABUCADwpJgYAGUYCAgACAAAAFroBFgYmCBa6AQAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjYuMC4xGSwcAAAcAAAA4wAAAFBBUjE=';

test('INT96 times have their value in all years, in lists too', async () => {
  writeFileSync(path('int96.parquet'), Buffer.from(INT96, 'base64'));
  const source = new ParquetSource(path('int96.parquet'));
  expect(String(await source.schema())).toBe(
    'Schema<{ 0: ts: Timestamp<MICROSECOND>, 1: l: List<Timestamp<MICROSECOND>> }>',
  );
  const [batch] = await collect(await source.execute(context()));
  const [times, lists] = batch.data.children;
  const expected = await duckRows(`SELECT epoch_us(ts), epoch_us(l[1]) FROM '${path('int96.parquet')}'`);
  expect([times.values[0], times.values[2], lists.children[0].values[0]]).toEqual([
    expected[0][0],
    expected[2][0],
    expected[0][1],
  ]);
  expect(times.values[0]).toBe(BigInt(Date.UTC(9999, 11, 31, 1, 2, 3)) * 1000n + 456_789n);
  expect([times.nullCount, lists.nullCount]).toEqual([1, 1]);
});

test('the rows come in order, each batch with its origin and the schema of the stream', async () => {
  const source = new ParquetSource(path('big.parquet'), { batchSize: 1000 });
  const stream = await source.execute(context());
  const batches = await collect(stream);
  expect(arrowRows(batches)).toEqual(await duckRows(`SELECT * FROM '${path('big.parquet')}'`));
  let row = 0;
  for (const batch of batches) {
    expect(util.compareSchemas(batch.schema, stream.schema)).toBe(true);
    expect(originOf(batch)).toEqual({
      file: path('big.parquet'),
      rowGroup: Math.floor(row / 2048),
      firstRow: row,
    });
    row += batch.numRows;
  }
  // A source can run again.
  expect(arrowRows(await collect(await source.execute(context())))).toHaveLength(10000);
});

test('columns are pruned: the bytes of the others are not read', async () => {
  const read = async (columns?: string[]) => {
    const reader = await (await parquetBackend()).open(path('big.parquet'));
    await collect(
      (async function* () {
        for await (const { batch } of reader.read({ columns, batchSize: 1000 })) yield batch;
      })(),
    );
    await reader.close();
    return (reader as unknown as { counter: { bytes: number } }).counter.bytes;
  };
  expect(await read(['rating'])).toBeLessThan((await read()) / 2);
  const stream = await new ParquetSource(path('big.parquet')).execute(context(), ['rating', 'user']);
  expect(stream.schema.fields.map((field) => field.name)).toEqual(['user', 'rating']);
  expect((await collect(stream)).every((batch) => batch.numCols === 2)).toBe(true);
  await expect(new ParquetSource(path('big.parquet')).execute(context(), ['stars'])).rejects.toThrow(
    'column "stars"). The columns are: user, item, rating',
  );
});

test('no columns at all still give the rows', async () => {
  const batches = await collect(await new ParquetSource(path('big.parquet')).execute(context(), []));
  expect(batches.reduce((sum, batch) => sum + batch.numRows, 0)).toBe(10000);
  expect(batches[0].numCols).toBe(0);
});

test('nothing is read before it is asked for, and leaving early closes the file', async () => {
  const before = readdirSync('/proc/self/fd').length;
  const stream = await new ParquetSource(path('big.parquet'), { batchSize: 100 }).execute(context());
  let pulled = 0;
  for await (const batch of stream) {
    pulled += batch.numRows;
    if (pulled === 300) break;
  }
  expect(pulled).toBe(300);
  expect(readdirSync('/proc/self/fd').length).toBe(before);
});

test('the signal ends the stream between batches', async () => {
  const controller = new AbortController();
  const seen: number[] = [];
  const run = async () => {
    for await (const batch of await new ParquetSource(path('big.parquet'), { batchSize: 500 }).execute(
      context(controller.signal),
    )) {
      seen.push(batch.numRows);
      if (seen.length === 3) controller.abort();
    }
  };
  await expect(run()).rejects.toThrow(CancelledError);
  expect(seen).toHaveLength(3);
});

describe('row groups that cannot match', () => {
  test('are skipped by their statistics; rows outside the range may still come', async () => {
    await copy(
      'SELECT i::INTEGER AS item, i::BIGINT AS at FROM range(10000) t(i)',
      'sorted.parquet',
      ', ROW_GROUP_SIZE 2048',
    );
    const range = async (...bounds: Bound[]) => {
      const source = new ParquetSource(path('sorted.parquet')).within(bounds);
      const items = arrowRows(await collect(await source.execute(context(), ['item'])));
      return [items[0]?.[0], items.at(-1)?.[0]];
    };
    const bound = (column: string, operator: Bound['operator'], value: number): Bound => ({
      column,
      operator,
      values: [{ kind: 'literal', type: 'int64', value: String(value) }],
    });
    expect(await range(bound('item', '>=', 5000), bound('item', '<=', 5100))).toEqual([4096, 6143]);
    expect(await range(bound('at', '<=', 100))).toEqual([0, 2047]);
    expect(await range(bound('at', '<', 0))).toEqual([undefined, undefined]);
    expect(await range(bound('at', '>=', 20000))).toEqual([undefined, undefined]);
    expect(await range(bound('at', '=', 2048))).toEqual([2048, 4095]);
    // A count of no nulls is not trusted without a page index.
    expect(await range({ column: 'item', operator: 'isNull', values: [] })).toEqual([0, 9999]);
    expect(await range(bound('other', '>', 1))).toEqual([0, 9999]);
  });

  test.each([0, 100])('a wrong count of %i nulls loses no row', async (counted) => {
    await copy(
      'SELECT CASE WHEN i % 3 = 0 THEN i::INTEGER END AS n, i::INTEGER AS i FROM range(100) t(i)',
      'counted.parquet',
    );
    editFooter(path('counted.parquet'), (footer) => {
      // Row groups, columns, metadata, statistics, null_count, as in parquet.thrift.
      for (const group of structsIn(footer, 4))
        for (const chunk of structsIn(group, 1)) structIn(structIn(chunk, 3), 12).set(3, thrift.i64(counted));
    });
    const rows = async (bound: Bound) =>
      arrowRows(
        await collect(await new ParquetSource(path('counted.parquet')).within([bound]).execute(context())),
      ).length;
    expect(await rows({ column: 'n', operator: 'isNull', values: [] })).toBe(100);
    expect(await rows({ column: 'n', operator: 'isNotNull', values: [] })).toBe(100);
  });

  test('a float that may be NaN is above any number', async () => {
    await copy(
      "SELECT CASE WHEN i = 7 THEN 'nan'::DOUBLE ELSE i END AS x FROM range(10) t(i)",
      'nan.parquet',
    );
    const above: Bound = {
      column: 'x',
      operator: '>',
      values: [{ kind: 'literal', type: 'float64', value: 100 }],
    };
    const source = new ParquetSource(path('nan.parquet')).within([above]);
    expect(arrowRows(await collect(await source.execute(context())))).toHaveLength(10);
  });

  test('unsigned columns have no usable order', async () => {
    const source = new ParquetSource(join(goldenFolder, 'unsigned.parquet')).within([
      { column: 'u32', operator: '>=', values: [{ kind: 'literal', type: 'int64', value: '4294967000' }] },
    ]);
    expect(arrowRows(await collect(await source.execute(context())))).toHaveLength(50);
  });
});

describe('several files', () => {
  test('are read in the order of their paths, with one schema', async () => {
    await copy(ratings(100), 'b.parquet');
    await copy(`SELECT rating, item, "user" FROM (${ratings(100, 100)})`, 'a.parquet');
    const source = new ParquetSource([path('b.parquet'), path('a.parquet')]);
    const batches = await collect(await source.execute(context()));
    expect(batches.map((batch) => originOf(batch)?.file)).toEqual([path('a.parquet'), path('b.parquet')]);
    expect(arrowRows(batches)).toEqual(
      await duckRows(
        `SELECT rating, item, "user" FROM '${path('a.parquet')}' UNION ALL SELECT rating, item, "user" FROM '${path('b.parquet')}'`,
      ),
    );
    expect(await source.statistics(context())).toMatchObject({ rows: 200, files: 2 });
  });

  test('of different schemas are refused by file and column', async () => {
    await copy('SELECT 1::BIGINT AS "user", 2::INTEGER AS item, 3::FLOAT AS rating', 'wide.parquet');
    await copy('SELECT 1::INTEGER AS "user", 2::INTEGER AS item', 'narrow.parquet');
    await copy(
      'SELECT 1::INTEGER AS "user", 2::INTEGER AS item, 3::FLOAT AS rating, 4 AS more',
      'more.parquet',
    );
    const together = (name: string) => new ParquetSource([path('big.parquet'), path(name)]).schema();
    await expect(together('wide.parquet')).rejects.toThrow(
      /this file has column "user" as Int64, and .*big.parquet as Int32 \(.*wide.parquet, column "user"\)/,
    );
    await expect(together('narrow.parquet')).rejects.toThrow(/has no column "rating".*narrow.parquet/);
    await expect(together('more.parquet')).rejects.toThrow(/has a column "more".*more.parquet/);
  });

  test('in Hive folders get the folders as columns', async () => {
    const source = new ParquetSource(path('hive'));
    expect(String(await source.schema())).toBe(
      'Schema<{ 0: user: Int32, 1: item: Int32, 2: rating: Float32, 3: year: Int32, 4: place: Utf8 }>',
    );
    const rows = arrowRows(await collect(await source.execute(context())));
    const expected = await duckRows(
      `SELECT "user", item, rating, (2000 + item % 3)::INTEGER, CASE WHEN item % 2 = 0 THEN 'a b/ä' ELSE NULL END FROM (${ratings(500)})`,
    );
    const sorted = (all: unknown[][]) => all.map((row) => JSON.stringify(row.map(plain))).sort();
    expect(sorted(rows)).toEqual(sorted(expected));
    const years = await collect(await source.execute(context(), ['year']));
    expect(years.reduce((sum, batch) => sum + batch.numRows, 0)).toBe(500);
    expect(years[0].schema.fields.map((field) => field.name)).toEqual(['year']);
  });
});

test('a request travels as JSON and gives the same rows elsewhere', async () => {
  const source = new ParquetSource(path('hive'));
  const requests = JSON.parse(JSON.stringify(await source.requests(['item', 'year']))) as Parameters<
    typeof readRowGroups
  >[0][];
  const there = [];
  for (const request of requests) there.push(...(await collect(readRowGroups(request))));
  expect(arrowRows(there)).toEqual(
    arrowRows(await collect(await source.execute(context(), ['item', 'year']))),
  );
  const [second] = await collect(
    readRowGroups({ file: path('big.parquet'), rowGroups: [1], columns: ['item'] }),
  );
  expect(originOf(second)).toMatchObject({ rowGroup: 1, firstRow: 2048 });
});

test('lists and structs are read by names of any characters, all together and each by itself', async () => {
  const values = {
    é: '[i, i + 1]',
    日本: '[[i]]',
    'e\u0301\u{1F600}': "[{'é': 'a', 'b': i}]",
    naïve: "{'a': i, '日': ['x']}",
    ab: '[i]',
    user: "'ü' || i",
  };
  const names = Object.keys(values);
  const query = Object.entries(values).map(([name, value]) => `${value} AS "${name}"`);
  const file = path('names.parquet');
  const select = `SELECT ${query.join(', ')}, i AS "é2" FROM range(2) t(i)`;
  await (await duckdb()).run(`COPY (${select}) TO '${file}' (FORMAT parquet)`);
  const rows = [0, 1].map((i) => [[i, i + 1], [[i]], [{ é: 'a', b: i }], { a: i, 日: ['x'] }, [i], `ü${i}`]);
  const source = new ParquetSource(file);
  for (const columns of [names, ...names.map((name) => [name])]) {
    const batches = await collect(await source.execute(context(), columns));
    const read = JSON.stringify(
      batches.flatMap((batch) => batch.toArray()),
      (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value),
    );
    const own = rows.map((row) =>
      Object.fromEntries(columns.map((name) => [name, row[names.indexOf(name)]])),
    );
    expect(JSON.parse(read)).toEqual(own);
  }
});
