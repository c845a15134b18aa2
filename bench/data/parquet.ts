/**
 * Rates and peak resident memory of reading and writing ratings as Parquet, each in its own process, the
 * median of five runs after one warm-up run; DuckDB on one thread reads the same file as the reference.
 *
 *     node bench/data/parquet.ts [rows, default 20000000]
 */
import { tableFromArrays } from 'apache-arrow';
import type { RecordBatch } from 'apache-arrow';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codecs } from '../../connectors/parquet/backend.ts';
import type { Codec } from '../../connectors/parquet/backend.ts';
import { ParquetSink } from '../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import { describeMachine } from '../machine.ts';

interface Measured {
  readonly seconds: number;
  readonly peakRssMiB: number;
}

const batchRows = 1 << 17;
const repetitions = 5;
const context = { signal: new AbortController().signal, events: () => {} };

/** Ratings with MovieLens-20M's numbers of users and items, scrambled by a counter. */
function* ratings(rows: number): Generator<RecordBatch> {
  for (let from = 0; from < rows; from += batchRows) {
    const length = Math.min(batchRows, rows - from);
    const scrambled = Uint32Array.from(
      { length },
      (_, i) => Math.imul(from + i, 2654435761) ^ ((from + i) >>> 7),
    );
    yield tableFromArrays({
      user: Int32Array.from(scrambled, (value) => value % 138493),
      item: Int32Array.from(scrambled, (value) => (Math.imul(value, 40503) >>> 0) % 26744),
      rating: Float32Array.from(scrambled, (value) => ((value >>> 9) % 10) / 2 + 0.5),
    }).batches[0];
  }
}

async function write(file: string, rows: number, codec: Codec): Promise<void> {
  const batches = ratings(rows);
  const first = batches.next().value as RecordBatch;
  const all = (async function* () {
    yield first;
    yield* batches;
  })();
  await new ParquetSink(file, { codec, overwrite: true }).consume(batchStream(first.schema, all), context);
}

async function read(file: string, batchSize: number, columns?: string[]): Promise<void> {
  let rows = 0;
  for await (const batch of await new ParquetSource(file, { batchSize }).execute(context, columns))
    rows += batch.numRows;
  if (rows === 0) throw new Error('no rows');
}

async function reference(file: string): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
  await connection.run(`SELECT sum("user"), sum(item), sum(rating) FROM '${file}'`);
}

const tasks: Record<string, (file: string, ...more: string[]) => Promise<void>> = {
  write: (file, rows, codec) => write(file, Number(rows), codec as Codec),
  generate: async (_file, rows) => {
    for (const batch of ratings(Number(rows))) if (batch.numRows === 0) throw new Error('no rows');
  },
  read: (file, batchSize, ...columns) =>
    read(file, Number(batchSize), columns.length > 0 ? columns : undefined),
  reference,
};

function measure(task: string, ...rest: string[]): Measured {
  return JSON.parse(
    execFileSync(process.execPath, [import.meta.filename, '--task', task, ...rest], { encoding: 'utf8' }),
  ) as Measured;
}

async function child(task: string, file: string, rest: string[]): Promise<void> {
  const seconds: number[] = [];
  for (let run = 0; run <= (task === 'write' || task === 'generate' ? 0 : repetitions); run++) {
    const started = performance.now();
    await tasks[task](file, ...rest);
    seconds.push((performance.now() - started) / 1000);
  }
  const warm = seconds.slice(seconds.length > 1 ? 1 : 0).sort((a, b) => a - b);
  process.stdout.write(
    JSON.stringify({ seconds: warm[warm.length >> 1], peakRssMiB: process.resourceUsage().maxRSS / 1024 }),
  );
}

function main(rows: number): void {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-bench-'));
  const report = (name: string, { seconds, peakRssMiB }: Measured, note = '') =>
    console.log(
      `${name.padEnd(34)} ${seconds.toFixed(2).padStart(6)} s ${(rows / seconds / 1e6).toFixed(1).padStart(7)} M rows/s ${peakRssMiB.toFixed(0).padStart(5)} MiB  ${note}`,
    );
  try {
    console.log(`${describeMachine()}\n${rows} rows of (int32, int32, float32)`);
    const generation = measure('generate', '', String(rows));
    for (const codec of codecs) {
      const file = join(folder, `${codec}.parquet`);
      const written = measure('write', file, String(rows), codec);
      report(
        `write ${codec}`,
        { ...written, seconds: written.seconds - generation.seconds },
        `${(statSync(file).size / rows).toFixed(2)} bytes a row`,
      );
    }
    for (const codec of codecs) {
      const file = join(folder, `${codec}.parquet`);
      const duck = measure('reference', file);
      const ours = measure('read', file, String(batchRows));
      report(
        `read ${codec}`,
        ours,
        `${(ours.seconds / duck.seconds).toFixed(2)} x DuckDB, one thread, summing`,
      );
    }
    const zstd = join(folder, 'zstd.parquet');
    for (const batchSize of [1 << 13, 1 << 15, 1 << 16, 1 << 18, 1 << 20])
      report(`read zstd, batches of ${batchSize}`, measure('read', zstd, String(batchSize)));
    report('read zstd, one column of three', measure('read', zstd, String(batchRows), 'rating'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const [flag, task, file, ...rest] = process.argv.slice(2);
if (flag === '--task') await child(task, file, rest);
else main(Number(flag ?? 20_000_000));
