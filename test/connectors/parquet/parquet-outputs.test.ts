import { makeVector, Table } from 'apache-arrow';
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { CancelledError, UsageError } from '../../../engine/errors.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { arrowRows, collect, context, duckRows, outcome } from './parquet-testing.ts';
import { leftovers, path, ratings, write } from './written-ratings.ts';

describe('existing output', () => {
  test('is an error before anything is pulled, unless it may be replaced', async () => {
    await write('twice', [ratings(10)]);
    let pulled = 0;
    const stream = batchStream(
      ratings(1).schema,
      (async function* () {
        pulled++;
        yield ratings(20);
      })(),
    );
    await expect(new ParquetSink(path('twice')).consume(stream, context())).rejects.toThrow(
      /exists already.*pass overwrite: true/,
    );
    await expect(new ParquetSink(path('twice')).check()).rejects.toThrow(UsageError);
    expect(pulled).toBe(0);
    await write('twice', [ratings(20)], { overwrite: true, rowsPerPart: 15 });
    expect(await duckRows(`SELECT count(*) FROM '${path('twice')}/*.parquet'`)).toEqual([[20n]]);
    await write('twice.parquet', [ratings(10)]);
    await expect(write('twice.parquet', [ratings(10)])).rejects.toThrow(UsageError);
    await write('twice.parquet', [ratings(30)], { overwrite: true });
    expect(await duckRows(`SELECT count(*) FROM '${path('twice.parquet')}'`)).toEqual([[30n]]);
  });

  test('can be its own input', async () => {
    await write('own', [ratings(5000)], { rowsPerPart: 2000 });
    const source = new ParquetSource(path('own'), { batchSize: 100 });
    await new ParquetSink(path('own'), { overwrite: true }).consume(
      await source.execute(context()),
      context(),
    );
    expect(arrowRows(await collect(await new ParquetSource(path('own')).execute(context())))).toEqual(
      arrowRows([ratings(5000)]),
    );
  });
});

describe('after a failure nothing is left', () => {
  async function* failing(error: Error) {
    yield ratings(3000);
    yield ratings(3000);
    throw error;
  }

  test('of the input', async () => {
    const sink = new ParquetSink(path('deep/er/failed'), { rowsPerPart: 1000 });
    await expect(
      sink.consume(batchStream(ratings(1).schema, failing(new Error('input broke'))), context()),
    ).rejects.toThrow('input broke');
    expect(existsSync(path('deep'))).toBe(false);
    expect(leftovers()).toEqual([]);
  });

  test('or a cancellation', async () => {
    const controller = new AbortController();
    const stream = batchStream(
      ratings(1).schema,
      (async function* () {
        for (;;) {
          yield ratings(1000);
          controller.abort();
        }
      })(),
    );
    await expect(
      new ParquetSink(path('cancelled')).consume(stream, context(controller.signal)),
    ).rejects.toThrow(CancelledError);
    expect(existsSync(path('cancelled'))).toBe(false);
    expect(leftovers()).toEqual([]);
  });

  test('and the error names the path that was asked for', async () => {
    const nan = new Table({ rating: makeVector(Float32Array.of(Number.NaN)) }).batches[0];
    const failures = {
      'refused.parquet': () =>
        write('refused.parquet', [nan], { codec: 'snappy', backend: 'parquetjs-lite' }),
      'refused/part-00000.parquet': () =>
        write('refused', [nan], { codec: 'snappy', backend: 'parquetjs-lite' }),
      [`${'x'.repeat(300)}.parquet`]: () => write(`${'x'.repeat(300)}.parquet`, [nan]),
    };
    for (const [name, run] of Object.entries(failures)) {
      const error = await outcome(run);
      expect(error).toMatchObject({ name: 'DataError', details: { phase: 'write', file: path(name) } });
      expect(String(error)).not.toContain('.tmp-');
    }
    expect(leftovers()).toEqual([]);
  });

  test.skipIf(!existsSync('/dev/full'))('and a full disk says that it is full', async () => {
    const { fileProblem } = await import('../../../connectors/files/file-problem.ts');
    const { open } = await import('node:fs/promises');
    const handle = await open('/dev/full', 'w');
    const error = await handle.write('x').catch((problem: unknown) => problem);
    await handle.close();
    expect(fileProblem(error, 'write', 'out')).toMatchObject({ name: 'CapacityError', exitCode: 4 });
  });
});
