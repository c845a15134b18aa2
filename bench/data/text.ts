/**
 * Lines of separated text and NDJSON read and written per second on one core, with peak resident memory;
 * DuckDB on one thread reads the same file as the reference.
 *
 *     node bench/data/text.ts [lines, default 10000000]
 */
import { Float64, Int32, makeData, RecordBatch, Schema, Field, Struct } from 'apache-arrow';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSink } from '../../connectors/open-sink.ts';
import { openSource } from '../../connectors/open-source.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import { describeMachine } from '../machine.ts';

const batchRows = 1 << 16;
const context = { signal: new AbortController().signal, events: () => {} } as unknown as ExecutionContext;
const schema = new Schema([
  new Field('userId', new Int32()),
  new Field('movieId', new Int32()),
  new Field('rating', new Float64()),
  new Field('timestamp', new Int32()),
]);

/** Ratings with MovieLens-20M's numbers of users and items, scrambled by a counter. */
async function* ratings(lines: number): AsyncGenerator<RecordBatch> {
  for (let from = 0; from < lines; from += batchRows) {
    const length = Math.min(batchRows, lines - from);
    const scrambled = Uint32Array.from(
      { length },
      (_, i) => Math.imul(from + i, 2654435761) ^ ((from + i) >>> 7),
    );
    const ints = (of: (value: number, i: number) => number) =>
      makeData({ type: new Int32(), length, data: Int32Array.from(scrambled, of) });
    const rating = makeData({
      type: new Float64(),
      length,
      data: Float64Array.from(scrambled, (value) => ((value >>> 9) % 10) / 2 + 0.5),
    });
    const children = [
      ints((value) => value % 138493),
      ints((value) => (Math.imul(value, 40503) >>> 0) % 26744),
      rating,
      ints((_, i) => 1112486027 + from + i),
    ];
    yield new RecordBatch(
      schema,
      makeData({ type: new Struct(schema.fields), length, nullCount: 0, children }),
    );
  }
}

async function read(file: string): Promise<void> {
  for await (const batch of await (await openSource(file)).execute(context))
    if (batch.numRows === 0) throw new Error('no rows');
}

async function duckdb(file: string): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
  await connection.run(
    `SELECT sum("userId"), sum("movieId"), sum(rating), sum("timestamp") FROM read_csv('${file}')`,
  );
}

/** The median of five runs after one warm-up run: seconds of wall time and of processor time. */
async function measure(run: () => Promise<unknown>): Promise<{ wall: number; cpu: number }> {
  const runs: { wall: number; cpu: number }[] = [];
  for (let i = 0; i < 6; i++) {
    const [started, used] = [performance.now(), process.cpuUsage()];
    await run();
    const { user, system } = process.cpuUsage(used);
    runs.push({ wall: (performance.now() - started) / 1000, cpu: (user + system) / 1e6 });
  }
  return runs.slice(1).sort((a, b) => a.wall - b.wall)[2];
}

const lines = Number(process.argv[2] ?? 10_000_000);
const folder = mkdtempSync(join(tmpdir(), 'factorflow-bench-'));
try {
  console.log(`${describeMachine()}\n${lines} lines of userId,movieId,rating,timestamp`);
  const report = (name: string, { wall, cpu }: { wall: number; cpu: number }) => {
    const peak = (process.resourceUsage().maxRSS / 1024).toFixed(0);
    console.log(
      `${name.padEnd(24)} ${wall.toFixed(2).padStart(6)} s ${(lines / wall / 1e6).toFixed(2).padStart(6)} M lines/s ${cpu.toFixed(2).padStart(6)} s of processors, peak so far ${peak} MiB`,
    );
  };
  for (const name of [
    'ratings.csv',
    'ratings.dat',
    'ratings.csv.gz',
    'ratings.csv.zst',
    'ratings.csv.lz4',
    'ratings.ndjson',
    'ratings.ndjson.lz4',
  ]) {
    const file = join(folder, name);
    const started = performance.now();
    await openSink(file).consume(batchStream(schema, ratings(lines)), context);
    const seconds = (performance.now() - started) / 1000;
    console.log(
      `write ${name.padEnd(18)} ${seconds.toFixed(2).padStart(6)} s ${(lines / seconds / 1e6).toFixed(2).padStart(6)} M lines/s, ${(statSync(file).size / lines).toFixed(1)} bytes a line`,
    );
    report(`read ${name}`, await measure(() => read(file)));
  }
  report('DuckDB, one thread, sums', await measure(() => duckdb(join(folder, 'ratings.csv'))));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
