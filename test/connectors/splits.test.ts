import { join } from 'node:path';
import type { RecordBatch } from 'apache-arrow';
import { beforeAll, expect, test } from 'vitest';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import { readSplit } from '../../connectors/read-split.ts';
import type { Source } from '../../engine/stream/operator.ts';
import type { SourceSplit } from '../../engine/stream/split.ts';
import { originOf } from '../../engine/stream/stream.ts';
import { arrowRows, collect, context, duckdb, temporaryFolder } from './parquet/parquet-testing.ts';

const folder = temporaryFolder();
const parquet = join(folder, 'ratings');

beforeAll(async () => {
  const rows = `SELECT (i % 97)::INTEGER AS "user", (i * 7 % 53)::INTEGER AS item, (i % 10)::FLOAT AS rating, i % 2 AS part FROM range(10000) t(i)`;
  await (await duckdb()).run(`COPY (${rows}) TO '${parquet}' (FORMAT parquet, ROW_GROUP_SIZE 2048, PARTITION_BY part)`);
});

/** The rows of all splits, read after a journey through JSON, with their places. */
async function readAll(source: Source, targetBytes: number, columns?: readonly string[]) {
  const found = await source.splits?.(context(), columns, undefined, targetBytes);
  if (found === undefined) throw new Error('the source has no splits');
  const batches: RecordBatch[] = [];
  for (const split of found.splits) {
    const sent = JSON.parse(JSON.stringify(split)) as SourceSplit;
    for await (const batch of readSplit(sent, found.schema, { signal: context().signal, takesFaults: false })) batches.push(batch);
  }
  return { splits: found.splits, ...placed(batches) };
}

function placed(batches: readonly RecordBatch[]) {
  const places = batches.flatMap((batch) => Array.from({ length: batch.numRows }, (_, row) => {
    const { file, rowGroup, firstRow = 0 } = originOf(batch) ?? {};
    return [file, rowGroup, firstRow + row];
  }));
  return { rows: arrowRows(batches), places };
}

test('the splits of Parquet files together have the rows of the stream, at the same places', async () => {
  const source = new ParquetSource(parquet);
  const stream = placed(await collect(await source.execute(context())));
  for (const targetBytes of [1, 5000, 1e9]) {
    const { splits, rows, places } = await readAll(source, targetBytes);
    expect(rows).toEqual(stream.rows);
    expect(places).toEqual(stream.places);
    expect(splits.reduce((sum, split) => sum + (split.rows ?? 0), 0)).toBe(10000);
    if (targetBytes !== 5000) expect(splits).toHaveLength(targetBytes === 1 ? 6 : 2);
  }
  const some = await readAll(source, 1, ['rating', 'part']);
  expect(some.rows).toEqual(placed(await collect(await source.execute(context(), ['rating', 'part']))).rows);
});
