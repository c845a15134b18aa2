import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { Field, Int32, Int64, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { copiedIds, copyGroups, type CopyLayout } from '../../synthetic/copies/copies.ts';
import { copiedSchema, copyBatch } from '../../synthetic/copies/copy-batch.ts';
import { copyDataset } from '../../synthetic/copies/copy-dataset.ts';
import { generateDataset } from '../../synthetic/dataset/generate-dataset.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'factorflow-copies-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function query(sql: string) {
  const duckdb = await (await DuckDBInstance.create()).connect();
  return (await duckdb.runAndReadAll(sql)).getRowsJson();
}

async function bytesOf(output: string): Promise<Record<string, Buffer>> {
  const files = (await readdir(output, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  );
  const paths = files.map((file) => join(file.parentPath, file.name)).sort();
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path.slice(output.length + 1), await readFile(path)])),
  );
}

/** The differences, both ways, between the grid that DuckDB makes of the source and the written rows. */
async function difference(
  source: string,
  copies: string,
  [users, items]: readonly number[],
  [userSpan, itemSpan]: readonly number[],
) {
  const grid = `select "user" + a * ${userSpan} as u, item + b * ${itemSpan} as i, rating from '${source}', range(${users}) as x(a), range(${items}) as y(b)`;
  const rows = `select "user" as u, item as i, rating from '${copies}'`;
  return query(`(${grid} except all ${rows}) union all (${rows} except all ${grid})`);
}

describe('copies of a preset', () => {
  const options = { preset: 'yahoor4', scale: 0.05, seed: 2 };

  it('are a grid of equal blocks, the same for any number of threads', async () => {
    const one = join(folder, 'one');
    const { description: single } = await generateDataset({ ...options, output: one });
    const outputs = [1, 2].map((workers) => ({ workers, output: join(folder, `copies-${workers}`) }));
    const copies = { users: 3, items: 2 };
    for (const { workers, output } of outputs)
      await generateDataset({ ...options, copies, ratingsPerPart: 12_000, workers, output });
    const [{ output }] = outputs;
    for (const part of ['train', 'test']) {
      expect(
        await difference(
          `${one}/${part}/*.parquet`,
          `${output}/${part}/*.parquet`,
          [3, 2],
          [single.users, single.items],
        ),
      ).toEqual([]);
    }
    expect(await bytesOf(outputs[1].output)).toEqual(await bytesOf(output));
    expect((await readdir(join(output, 'train'))).length).toBeGreaterThan(3);
    const description = JSON.parse(await readFile(join(output, 'dataset.json'), 'utf8'));
    expect(description).toMatchObject({
      copies: [3, 2],
      users: 3 * single.users,
      items: 2 * single.items,
      train: 6 * single.train,
      bestTestRmse: single.bestTestRmse,
    });
    const [[mean, most]] = await query(
      `select avg(n), max(n) from (select count(*) n from '${output}/*/*.parquet' group by item)`,
    );
    expect(description.degrees.items).toMatchObject({ mean, maximum: Number(most) });
  });

  it('get int64 ids where int32 ends', () => {
    const ids = { smallest: 0, largest: 2 ** 30 - 1 };
    expect(copiedIds('item', ids, 3)).toEqual({ column: 'item', copies: 3, span: 2 ** 30, wide: true });
    expect(copiedIds('item', ids, 2).wide).toBe(false);
  });
});

describe('copies of a data set', () => {
  async function source(sql: string, name = 'source.parquet'): Promise<string> {
    const file = join(folder, name);
    await query(`copy (${sql}) to '${file}' (format parquet, row_group_size 2048)`);
    return file;
  }

  it('keep every column but the ids, and start where the source does', async () => {
    const file = await source(
      `select (100 + i % 700)::int as "user", (i * 7 % 500 - 3)::bigint as item, (i % 5)::float as rating, 'row ' || i as note from range(20000) t(i)`,
    );
    const outputs = [1, 2].map((workers) => ({ workers, output: join(folder, `copies-${workers}`) }));
    for (const { workers, output } of outputs) {
      const { description, files } = await copyDataset({
        from: file,
        copies: { users: 2, items: 3 },
        workers,
        output,
        ratingsPerPart: 5000,
      });
      expect(description).toEqual({
        generator: 2,
        copies: [2, 3],
        userSpan: 700,
        itemSpan: 500,
        ratings: 120_000,
      });
      expect(files['']).toMatchObject({ path: output, rows: 120_000 });
    }
    const [{ output }] = outputs;
    expect(await difference(file, `${output}/*.parquet`, [2, 3], [700, 500])).toEqual([]);
    expect(
      await query(`select note, count(*) from '${output}/*.parquet' group by note having count(*) <> 6`),
    ).toEqual([]);
    expect(
      await query(`select column_name, column_type from (describe select * from '${output}/*.parquet')`),
    ).toEqual([
      ['user', 'INTEGER'],
      ['item', 'BIGINT'],
      ['rating', 'FLOAT'],
      ['note', 'VARCHAR'],
    ]);
    expect(await bytesOf(outputs[1].output)).toEqual(await bytesOf(output));
  });

  it('keep train and test apart, and know the best error', async () => {
    const [from, output] = [join(folder, 'from'), join(folder, 'to')];
    const { description: original } = await generateDataset({
      preset: 'delicious',
      scale: 0.02,
      output: from,
    });
    const { description, files } = await copyDataset({ from, copies: { users: 2, items: 1 }, output });
    expect([files.train.rows, files.test.rows]).toEqual([2 * original.train, 2 * original.test]);
    expect(description).toMatchObject({
      bestTestRmse: original.bestTestRmse,
      of: original,
      userSpan: original.users,
    });
    for (const part of ['train', 'test'])
      expect(
        await difference(
          `${from}/${part}/*.parquet`,
          `${output}/${part}/*.parquet`,
          [2, 1],
          [description.userSpan, 0],
        ),
      ).toEqual([]);
    await copyDataset({ from, copies: { users: 1, items: 2 }, output, overwrite: true });
    await writeFile(join(output, 'thesis.txt'), 'mine');
    await expect(
      copyDataset({ from, copies: { users: 1, items: 2 }, output, overwrite: true }),
    ).rejects.toThrow(/thesis\.txt/);
  });

  it('widen ids that outgrow int32, and refuse those beyond 2^53', async () => {
    const from = await source(
      `select (i * 1000000)::int as "user", 9007199254000000 + i as item, 1::float as rating from range(2000) t(i)`,
    );
    const output = join(folder, 'wide');
    await copyDataset({ from, copies: { users: 2, items: 1 }, output });
    expect(
      await query(
        `select min("user"), max("user"), min(item), max(item), count(*) from '${output}/*.parquet'`,
      ),
    ).toEqual([['0', String(2 * 1_999_000_000 + 1), '9007199254000000', '9007199254001999', '4000']]);
    await expect(
      copyDataset({ from, copies: { users: 1, items: 10_000_000_000 }, output: join(folder, 'no') }),
    ).rejects.toThrow(/1 x 10000000000 copies cannot be made/);
    await expect(
      copyDataset({ from, copies: { users: 1, items: 400 }, output: join(folder, 'no') }),
    ).rejects.toThrow(/"item" reach .* below 2\^53/);
  });

  it('refuse ids that cannot be offset, by name and place', async () => {
    const output = join(folder, 'no');
    const copies = { users: 2, items: 1 };
    const text = await source(`select 'u' || i as "user", 1 as item from range(10) t(i)`, 'text.parquet');
    await expect(copyDataset({ from: text, copies, output })).rejects.toThrow(
      /ids of type Utf8 cannot be copied.*"user"/,
    );
    await expect(copyDataset({ from: text, copies, output, userColumn: 'who' })).rejects.toThrow(
      /no column "who"; the columns are user, item/,
    );
    const holes = await source(
      `select case when i = 5000 then null else i end::int as "user", 1 as item from range(10000) t(i)`,
      'holes.parquet',
    );
    await expect(copyDataset({ from: holes, copies, output })).rejects.toThrow(
      /an id is null .*holes\.parquet, row group 2, row 5001, column "user"/,
    );
    const empty = await source(`select 1 as "user", 1 as item from range(0)`, 'empty.parquet');
    await expect(copyDataset({ from: empty, copies, output })).rejects.toThrow(/no ratings to copy/);
    await mkdir(output);
    await writeFile(join(output, 'mine.txt'), '');
    await expect(copyDataset({ from: holes, copies, output, overwrite: true })).rejects.toThrow(/mine\.txt/);
    expect((await readdir(folder)).sort()).toEqual(['empty.parquet', 'holes.parquet', 'no', 'text.parquet']);
  });
});

describe('one batch', () => {
  const ids = [-5, 0, 7, 2 ** 31 - 1];
  const layout = (wide: boolean): CopyLayout => ({
    user: { column: 'user', copies: 3, span: 2 ** 33 + 1, wide },
    item: { column: 'item', copies: 2, span: 10, wide: false },
  });

  function batchOf(type: Int32 | Int64): RecordBatch {
    const schema = new Schema([new Field('user', type), new Field('item', new Int32())]);
    const user =
      type instanceof Int32
        ? makeData({ type, length: 4, data: Int32Array.from(ids) })
        : makeData({ type, length: 4, data: BigInt64Array.from(ids, BigInt) });
    const children = [user, makeData({ type: new Int32(), length: 4, data: Int32Array.of(1, 2, 3, 4) })];
    return new RecordBatch(
      schema,
      makeData({ type: new Struct(schema.fields), length: 4, nullCount: 0, children }),
    );
  }

  it.each([new Int32(), new Int64()])('of %s ids has them offset exactly', (type) => {
    const batch = batchOf(type);
    const schema = copiedSchema(batch.schema, layout(true));
    for (const [copy, a, b] of [
      [0, 0, 0],
      [1, 0, 1],
      [4, 2, 0],
      [5, 2, 1],
    ]) {
      const copied = copyBatch(batch, schema, layout(true), copy);
      expect([...(copied.getChild('user') ?? [])]).toEqual(
        ids.map((id) => BigInt(id) + BigInt(a) * (2n ** 33n + 1n)),
      );
      expect([...(copied.getChild('item') ?? [])]).toEqual([1, 2, 3, 4].map((id) => id + 10 * b));
    }
  });

  it('is itself in the first copy', () => {
    const batch = batchOf(new Int32());
    const schema = copiedSchema(batch.schema, layout(false));
    expect(copyBatch(batch, schema, layout(false), 0)).toBe(batch);
    expect(copyBatch(batch, new Schema(schema.fields), layout(false), 0)).toBe(batch);
  });

  it('shares its part file with as many copies as fit', () => {
    expect(copyGroups({ users: 5, items: 1 }, 100, 250)).toEqual([
      { first: 0, end: 2 },
      { first: 2, end: 4 },
      { first: 4, end: 5 },
    ]);
    expect(copyGroups({ users: 2, items: 1 }, 1000, 250)).toHaveLength(2);
    expect(copyGroups({ users: 1, items: 1 }, 0.3, 250)).toEqual([{ first: 0, end: 1 }]);
  });
});
