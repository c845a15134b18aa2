/** Numbers that are read page by page: values as DuckDB reads them, memory, and damaged pages. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tableFromArrays } from 'apache-arrow';
import { beforeAll, describe, expect, test } from 'vitest';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { readSplit } from '../../../connectors/read-split.ts';
import { DataError } from '../../../engine/errors.ts';
import type { SourceSplits } from '../../../engine/stream/split.ts';
import { originOf } from '../../../engine/stream/stream.ts';
import { arrowRows, context, duckdb, duckRows, outcome, plain } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const ROWS = 300_000;
const path = (name: string) => join(folder, `${name}.parquet`);

/** Indices in runs and packed, a dictionary that overflows, plain values of 8 bytes. */
const query = `SELECT (i // 50)::INTEGER AS "user", ((i * 7919) % 30011)::INTEGER AS item, ((i * 31) % 10 / 2)::FLOAT AS rating, hash(i) / 3.0 AS wide, (i * 1000003)::BIGINT AS long FROM range(${ROWS}) t(i)`;

async function write(name: string, options: string, rows = query): Promise<void> {
  await (
    await duckdb()
  ).run(`COPY (${rows}) TO '${path(name)}' (FORMAT parquet, ROW_GROUP_SIZE 10000000, ${options})`);
}

/** The batches of a file, and the reads that it took from the disk. */
async function read(
  name: string,
  {
    batchSize = 100_000,
    columns,
  }: { readonly batchSize?: number; readonly columns?: readonly string[] } = {},
) {
  const reader = await (await parquetBackend()).open(path(name));
  const { counter } = reader as unknown as { counter: { fetches: number; bytes: number } };
  try {
    const batches = [];
    for await (const { batch } of reader.read({ batchSize, columns })) batches.push(batch);
    return { batches, fetches: counter.fetches, info: reader.info };
  } finally {
    await reader.close();
  }
}

describe.each(['zstd', 'snappy', 'gzip', 'brotli', 'lz4_raw', 'uncompressed'])('%s', (codec) => {
  test.each(['V1', 'V2'])(
    'values of version %s are those that DuckDB reads, in batches that cut across pages',
    async (version) => {
      const name = `${codec}-${version}`;
      await write(name, `CODEC ${codec}, PARQUET_VERSION ${version}`, query.replace(String(ROWS), '5000'));
      const { batches, fetches } = await read(name, { batchSize: 997 });
      // One window of each column, and nothing by the decoder. Version 2 has whole numbers by their
      // differences, which are left to it.
      if (version === 'V1') expect(fetches).toBe(5);
      expect(batches.slice(0, -1).every(({ numRows }) => numRows === 997)).toBe(true);
      expect(arrowRows(batches).map((row) => row.map(plain))).toEqual(
        (await duckRows(`SELECT * FROM '${path(name)}'`)).map((row) => row.map(plain)),
      );
    },
  );
});

describe('one row group', () => {
  beforeAll(() => write('large', 'CODEC zstd'));

  test('is read without the batches that nobody needs, whose pages other columns pass over', async () => {
    const reader = await (await parquetBackend()).open(path('large'));
    try {
      const all = arrowRows((await read('large', { batchSize: ROWS })).batches);
      const firsts: number[] = [];
      // Of 997 rows at a time: some after none, after one, and after many that are passed over.
      const wanted = new Set([0, 1, 3, 60, 61, 200, 299].map((batch) => Math.floor((batch * 997) / 50)));
      const mayHave = ({ values }: { readonly values: Int32Array }) => wanted.has(values[0]);
      const needed = () => ({ column: 'user', mayHave });
      for await (const { batch, firstRow } of reader.read({ batchSize: 997, needed })) {
        expect(arrowRows([batch])).toEqual(all.slice(firstRow, firstRow + batch.numRows));
        firsts.push(firstRow / 997);
      }
      expect(firsts).toEqual([0, 1, 3, 60, 61, 200, 299]);
    } finally {
      await reader.close();
    }
  });

  test('is read a window at a time, and not by the decoder', async () => {
    const columns = {
      user: Int32Array.from({ length: ROWS }, (_, i) => i),
      long: BigInt64Array.from({ length: ROWS }, (_, i) => BigInt(i)),
    };
    const table = tableFromArrays(columns);
    const writer = await (
      await parquetBackend()
    ).create(path('windows'), table.schema, { codec: 'uncompressed', rowGroupSize: ROWS, dictionary: false });
    for (const batch of table.batches) await writer.write(batch);
    await writer.close();
    const reader = await (await parquetBackend()).open(path('windows'));
    const { counter } = reader as unknown as { counter: { fetches: number; bytes: number } };
    const batches = reader.read({ batchSize: 1000 });
    let last = 0;
    for await (const { batch, firstRow } of batches) {
      expect(batch.getChildAt(0)?.get(999)).toBe(firstRow + 999);
      expect(batch.getChildAt(1)?.get(999)).toBe(BigInt(firstRow + 999));
      // Two windows of 1 MiB are there, and what was given.
      expect(counter.bytes).toBeLessThan(2.1 * 2 ** 20 + 12.2 * (firstRow + 1000));
      last = counter.fetches;
    }
    await reader.close();
    expect(last).toBe(Math.ceil((4 * ROWS) / 2 ** 20) + Math.ceil((8 * ROWS) / 2 ** 20));
  });

  test('with a null in the middle goes on where its pages were left', async () => {
    const rows = `SELECT "user", CASE WHEN "user" = 5000 THEN NULL ELSE item END AS item FROM (${query})`;
    await write('null', 'CODEC zstd', rows);
    const { batches } = await read('null', { batchSize: 10_000 });
    expect(batches.reduce((sum, { numRows }) => sum + numRows, 0)).toBe(ROWS);
    const sums = await duckRows(
      `SELECT count(item)::INTEGER, sum(item)::DOUBLE, sum("user")::DOUBLE FROM '${path('null')}'`,
    );
    const items = batches.flatMap((batch) => [...(batch.getChildAt(1) as Iterable<number | null>)]);
    const users = batches.flatMap((batch) => [...(batch.getChildAt(0) as Iterable<number>)]);
    const sum = (values: readonly (number | null)[]) =>
      values.reduce<number>((total, value) => total + (value ?? 0), 0);
    expect([items.filter((item) => item !== null).length, sum(items), sum(users)]).toEqual(sums[0]);
  });

  test('whose pages are damaged is an error that names file, row group and column', async () => {
    const bytes = readFileSync(path('large'));
    const { info } = await read('large', { columns: ['user'] });
    const { start, bytes: stored } = info.rowGroups[0].columns[1];
    writeFileSync(path('damaged'), bytes.fill(0xff, start + (stored >> 1), start + stored));
    const result = await outcome(() => read('damaged', { columns: ['user', 'item', 'rating'] }));
    expect(result).toBeInstanceOf(DataError);
    expect((result as DataError).details).toMatchObject({
      phase: 'read',
      file: path('damaged'),
      rowGroup: 0,
      column: 'item',
    });
    await expect(read('damaged', { columns: ['user', 'rating'] })).resolves.toBeDefined();
  });

  test('that is large is cut between pages into ranges that other threads read, to the same rows', async () => {
    const rows = 2_300_000;
    const values = {
      user: Int32Array.from({ length: rows }, (_, i) => i >> 4),
      item: Int32Array.from({ length: rows }, (_, i) => (i * 7919) % 30011),
      rating: Float32Array.from({ length: rows }, (_, i) => i % 5),
    };
    const table = tableFromArrays(values);
    const writer = await (
      await parquetBackend()
    ).create(path('ranges'), table.schema, { codec: 'snappy', rowGroupSize: rows });
    for (const batch of table.batches) await writer.write(batch);
    await writer.close();
    const splitsOf = async (columns: string[]) =>
      (await new ParquetSource(path('ranges')).splits(
        context(),
        columns,
        undefined,
        2 ** 22,
      )) as SourceSplits;
    const { schema, splits } = await splitsOf(['rating', 'user']);
    expect(splits.length).toBe(5);
    expect(splits.reduce((sum, split) => sum + (split.rows ?? Number.NaN), 0)).toBe(rows);
    let next = 0;
    for (const split of splits) {
      const before = next;
      for await (const batch of readSplit(split, schema, { signal: context().signal, takesFaults: false })) {
        expect(originOf(batch)).toMatchObject({ file: path('ranges'), rowGroup: 0, firstRow: next });
        expect(batch.getChild('user')?.toArray()).toEqual(values.user.subarray(next, next + batch.numRows));
        expect(batch.getChild('rating')?.toArray()).toEqual(
          values.rating.subarray(next, next + batch.numRows),
        );
        next += batch.numRows;
      }
      expect(next - before).toBe(split.rows);
      expect(next - before).toBeLessThanOrEqual(2 ** 19);
    }
    // A page that is damaged is an error of its range alone.
    const bytes = readFileSync(path('ranges'));
    const [, item] = (await read('ranges', { columns: ['user'] })).info.rowGroups[0].columns;
    writeFileSync(
      path('ranges'),
      bytes.fill(0xee, item.start + item.bytes - 3000, item.start + item.bytes - 1000),
    );
    const damaged = await splitsOf(['user', 'item']);
    const results = await Promise.all(
      damaged.splits.map((split) =>
        outcome(async () => {
          for await (const _ of readSplit(split, damaged.schema, {
            signal: context().signal,
            takesFaults: false,
          }));
        }),
      ),
    );
    expect(results.slice(0, -1)).toEqual(Array(results.length - 1).fill(undefined));
    expect((results.at(-1) as DataError).details).toMatchObject({
      file: path('ranges'),
      rowGroup: 0,
      column: 'item',
    });
  });
});
