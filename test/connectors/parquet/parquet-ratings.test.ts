import { Field, Float16, Int32, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ParquetBackendName } from '../../../connectors/parquet/backend.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { RunMetrics } from '../../../engine/metrics.ts';
import type { Model } from '../../../index.ts';
import { ALS, DataError, Session } from '../../../index.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { context, duckdb, duckRows, outcome, streamOf } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const columns = { user: 'user', item: 'item', rating: 'rating' };

async function written(name: string, rating: string, rows = 300): Promise<string> {
  const file = join(folder, `${name}.parquet`);
  const query = `SELECT (i % 17)::INTEGER AS user, (i // 17)::INTEGER AS item, ${rating} AS rating FROM range(${rows}) t(i)`;
  await (await duckdb()).run(`COPY (${query}) TO '${file}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`);
  return file;
}

/** The ratings in the engine, from batches of an odd size. */
async function ratingsOf(file: string, badRows: 'error' | 'skip' = 'error'): Promise<number[]> {
  const ctx = { ...context(), executor: new LocalExecutor([]), metrics: new RunMetrics() };
  const input = await new ParquetSource(file, { batchSize: 77 }).execute(ctx);
  const all: number[] = [];
  for await (const batch of new SelectRatings(columns, badRows).execute(input, ctx))
    all.push(...(batch.getChild('rating')?.toArray() as Float32Array));
  return all;
}

async function train(file: string, parquetBackend?: ParquetBackendName): Promise<Model> {
  await using session = await Session.create({ workers: 1, parquetBackend });
  return await new ALS({ rank: 2, maxIter: 2, seed: 1 }).fit(session.read.parquet(file));
}

describe('decimal ratings are the numbers they stand for', () => {
  test.each([
    ['int32', '((i % 10) / 2 - 2)::DECIMAL(4, 1)'],
    ['int64', '((i - 150) * 1234567.25)::DECIMAL(18, 4)'],
    ['128 bits', '((i - 150) * 1e20)::DECIMAL(38, 10)'],
    ['no fraction', '(i - 150)::DECIMAL(9, 0)'],
  ])('%s', async (name, rating) => {
    const file = await written(`decimal-${name}`, rating);
    const expected = (await duckRows(`SELECT rating::DOUBLE FROM '${file}'`)).map(([value]) =>
      Math.fround(value as number),
    );
    expect(await ratingsOf(file)).toEqual(expected);
  });

  test('a null among them is a bad row', async () => {
    const file = await written('decimal-null', 'CASE WHEN i = 100 THEN NULL ELSE (i / 8)::DECIMAL(9, 3) END');
    await expect(ratingsOf(file)).rejects.toThrow(
      /1 bad row, the first in .*decimal-null.parquet, row group 0, row 101: rating is null/,
    );
    expect(await ratingsOf(file, 'skip')).toHaveLength(299);
  });

  test('parquetjs-lite refuses them by name of the column', async () => {
    const error = await outcome(() =>
      new ParquetSource(join(folder, 'decimal-int32.parquet'), { backend: 'parquetjs-lite' }).schema(),
    );
    expect(error).toBeInstanceOf(DataError);
    expect(error).toMatchObject({ details: { column: 'rating', advice: 'Use the backend parquet-wasm' } });
  });
});

describe('float16 ratings', () => {
  const file = join(folder, 'half.parquet');
  // 1, -2, 65504 (largest), 2^-14 (smallest normal), 2^-24 (smallest), -0, 0.5, 1/3 rounded
  const bits = Uint16Array.of(0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x3800, 0x3555);
  const index = Int32Array.from(bits, (_, i) => i);
  const fields = [
    new Field('user', new Int32(), false),
    new Field('item', new Int32(), false),
    new Field('rating', new Float16(), false),
  ];
  const { length } = bits;
  const ids = () => makeData({ type: new Int32(), length, nullCount: 0, data: index });
  const data = [ids(), ids(), makeData({ type: new Float16(), length, nullCount: 0, data: bits })];
  const batch = new RecordBatch(
    new Schema(fields),
    makeData({ type: new Struct(fields), length, nullCount: 0, children: data }),
  );

  test('are the numbers they stand for, as DuckDB reads them', async () => {
    await new ParquetSink(file).consume(streamOf(batch.schema, [batch]), context());
    const expected = (await duckRows(`SELECT rating FROM '${file}'`)).map(([value]) => value);
    expect(await ratingsOf(file)).toEqual(expected);
    expect(expected.slice(0, 5)).toEqual([1, -2, 65504, 2 ** -14, 2 ** -24]);
    expect((await train(file)).rank).toBe(2);
  });
});

test.each([
  ['days', "DATE '2020-01-01'", /must hold numbers, but its type is Date/],
  ['bytes', "'x'::BLOB", /must hold numbers, but its type is Binary/],
  ['list', '[1.5::FLOAT]', /must hold numbers, but its type is List/],
])('ratings of %s are refused by name of the column', async (name, rating, message) => {
  const file = await written(`refused-${name}`, rating, 20);
  const error = await outcome(() => train(file));
  expect(error).toBeInstanceOf(DataError);
  expect(error).toMatchObject({ details: { column: 'rating' } });
  expect(String(error)).toMatch(message);
});
