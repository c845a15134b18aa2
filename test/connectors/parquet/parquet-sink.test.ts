import {
  Bool,
  Float32,
  Int64,
  makeVector,
  Table,
  tableFromArrays,
  TimestampMillisecond,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { codecs } from '../../../connectors/parquet/backend.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { arrowRows, collect, context, duckRows, plain, streamOf } from './parquet-testing.ts';
import { leftovers, path, ratings, write } from './written-ratings.ts';

const mixed = new Table({
  small: makeVector(Int32Array.of(1, -2, 3, 4, 5)),
  big: vectorFromArray([1n, -(2n ** 62n), null, 2n ** 53n + 1n, 0n], new Int64()),
  word: vectorFromArray(['a', 'ä\u{1F600}', null, '', 'end'], new Utf8()),
  rating: vectorFromArray([0.5, null, -0, Infinity, 1e-45], new Float32()),
  flag: vectorFromArray([true, false, null, true, false], new Bool()),
  at: vectorFromArray([0, 1e12, null, 1.5e12, 86400000], new TimestampMillisecond()),
}).batches[0];

describe('DuckDB reads what we write', () => {
  test.each(codecs)('with codec %s', async (codec) => {
    await write(`mixed-${codec}.parquet`, [mixed, mixed.slice(1, 4)], { codec, rowGroupSize: 3 });
    const expected = [...arrowRows([mixed]), ...arrowRows([mixed]).slice(1, 4)];
    expect((await duckRows(`SELECT * FROM '${path(`mixed-${codec}.parquet`)}'`)).map(plain)).toEqual(
      expected,
    );
    expect(
      arrowRows(await collect(await new ParquetSource(path(`mixed-${codec}.parquet`)).execute(context()))),
    ).toEqual(expected);
    const written = await duckRows(
      `SELECT DISTINCT compression FROM parquet_metadata('${path(`mixed-${codec}.parquet`)}')`,
    );
    expect(written.flat()).toEqual([codec === 'lz4' ? 'LZ4_RAW' : codec.toUpperCase()]);
  });

  test('as a folder of parts, cut by rows and not by batches', async () => {
    const batches = [ratings(700), ratings(1), ratings(1299, 701), ratings(500, 2000)];
    const summary = await write('parts', batches, { rowsPerPart: 1000, rowGroupSize: 400 });
    expect(summary).toMatchObject({ path: path('parts'), rows: 2500, files: 3 });
    expect(readdirSync(path('parts')).sort()).toEqual([
      'part-00000.parquet',
      'part-00001.parquet',
      'part-00002.parquet',
    ]);
    expect(await duckRows(`SELECT * FROM '${path('parts')}/*.parquet'`)).toEqual(arrowRows(batches));
    const groups = await duckRows(
      `SELECT DISTINCT row_group_id, row_group_num_rows FROM parquet_metadata('${path('parts')}/part-00000.parquet') ORDER BY 1`,
    );
    expect(groups.map((row) => row.map(Number))).toEqual([
      [0, 400],
      [1, 400],
      [2, 200],
    ]);
  });

  test('without rows there is still the schema', async () => {
    expect(await new ParquetSink(path('none')).consume(streamOf(mixed.schema, []), context())).toMatchObject({
      rows: 0,
      files: 1,
    });
    expect(await duckRows(`SELECT count(*) FROM '${path('none')}/*.parquet'`)).toEqual([[0n]]);
    expect(String(await new ParquetSource(path('none')).schema())).toBe(String(mixed.schema));
  });

  test('written by parquetjs-lite', async () => {
    const columns = ['small', 'word', 'flag'] as const;
    const chosen = new Table(Object.fromEntries(columns.map((name) => [name, mixed.getChild(name)!])))
      .batches[0];
    for (const codec of ['uncompressed', 'snappy', 'gzip'] as const) {
      await write(`lite-${codec}.parquet`, [chosen, chosen], {
        codec,
        backend: 'parquetjs-lite',
        rowGroupSize: 4,
      });
      expect(await duckRows(`SELECT * FROM '${path(`lite-${codec}.parquet`)}'`)).toEqual(
        arrowRows([chosen, chosen]),
      );
      for (const backend of ['parquet-wasm', 'parquetjs-lite'] as const) {
        expect(
          arrowRows(
            await collect(
              await new ParquetSource(path(`lite-${codec}.parquet`), { backend }).execute(context()),
            ),
          ),
        ).toEqual(arrowRows([chosen, chosen]));
      }
    }
  });
});

test('parquetjs-lite refuses what it would get wrong', async () => {
  const big = new Table({ big: vectorFromArray([2n ** 53n + 1n], new Int64()) }).batches[0];
  await expect(
    write('lite-big.parquet', [big], { codec: 'snappy', backend: 'parquetjs-lite' }),
  ).rejects.toThrow(/9007199254740993, beyond 2\^53 .*column "big"/);
  await expect(write('lite-zstd.parquet', [big], { backend: 'parquetjs-lite' })).rejects.toThrow(
    /cannot write codec zstd/,
  );
  const nan = new Table({ rating: makeVector(Float32Array.of(Number.NaN)) }).batches[0];
  await expect(
    write('lite-nan.parquet', [nan], { codec: 'snappy', backend: 'parquetjs-lite' }),
  ).rejects.toThrow(DataError);
  expect(leftovers()).toEqual([]);
  expect(existsSync(path('lite-big.parquet'))).toBe(false);
});

test('columns over the same memory are written each', async () => {
  for (const rows of [1, 2, 4, 8, 100]) {
    const memory = Int32Array.from({ length: 2 * rows }, (_, i) => i + 7);
    const ids = memory.subarray(0, rows);
    // Two columns are the same, one overlaps them, and one follows without a gap.
    const shared = tableFromArrays({
      user: ids,
      item: ids,
      next: memory.subarray(rows >> 1, (rows >> 1) + rows),
      last: memory.subarray(rows),
    }).batches[0];
    await write(`shared-${rows}.parquet`, [shared]);
    expect(await duckRows(`SELECT * FROM '${path(`shared-${rows}.parquet`)}'`)).toEqual(arrowRows([shared]));
  }
});

test('the input is pulled as fast as it is written, not faster', async () => {
  let pulled = 0;
  let most = 0;
  const told = context();
  const stream = batchStream(
    ratings(1).schema,
    (async function* () {
      for (; pulled < 50; pulled++) yield ratings(200);
    })(),
  );
  const events = (event: (typeof told.told)[number]) => {
    if (event.type === 'phase-progress') most = Math.max(most, pulled - event.done / 200);
    told.events(event);
  };
  const summary = await new ParquetSink(path('pulled'), { rowGroupSize: 1000 }).consume(stream, {
    ...told,
    events,
  });
  expect(summary.rows).toBe(10000);
  expect(most).toBeLessThanOrEqual(2);
  expect(told.told.at(0)).toMatchObject({ type: 'phase-start', phase: 'write' });
  expect(told.told.at(-1)).toMatchObject({ type: 'phase-end', phase: 'write', done: 10000 });
});

test('options are checked', () => {
  expect(() => new ParquetSink('x', { codec: 'lzo' as never })).toThrow(/unknown codec "lzo"/);
  expect(() => new ParquetSink('x', { rowGroupSize: 0 })).toThrow(UsageError);
  expect(() => new ParquetSink('x', { rowsPerPart: 1.5 })).toThrow(UsageError);
});
