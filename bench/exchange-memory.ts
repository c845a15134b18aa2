/**
 * Peak resident memory and seconds of one wide operator over many rows within a memory budget.
 *
 *     node bench/exchange-memory.ts make FOLDER                          20 files of 10 M rows, 50 M pairs; other.parquet
 *     node bench/exchange-memory.ts group|sort|distinct|join FOLDER 1GiB  by two threads
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Float32, Int32, Int64, makeData, RecordBatch, Schema, Field, Struct } from 'apache-arrow';
import { count, type Dataset, mean, Session } from '../index.ts';

const PAIRS = 50_000_000;
const USERS = 1_000_000;
const FILES = 20;
const FILE_ROWS = 10_000_000;
const OTHER_ROWS = 5_000_000;
const BATCH_ROWS = 65_536;

const [mode, folder, memoryBudget] = process.argv.slice(2);
if (mode === 'make') await make();
else await measure();

/** Numbers in [0, 1) that depend only on the seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function* batches(rows: number, random: () => number, pairAt?: (row: number) => number) {
  for (let from = 0; from < rows; from += BATCH_ROWS) {
    const length = Math.min(BATCH_ROWS, rows - from);
    const pairs = Float64Array.from({ length }, (_, i) =>
      pairAt ? pairAt(from + i) : Math.floor(random() * PAIRS),
    );
    const columns = {
      user: makeData({ type: new Int32(), data: Int32Array.from(pairs, (pair) => pair % USERS) }),
      item: makeData({ type: new Int32(), data: Int32Array.from(pairs, (pair) => Math.floor(pair / USERS)) }),
      ...(pairAt
        ? { label: makeData({ type: new Int32(), data: Int32Array.from(pairs, (pair) => pair % 97) }) }
        : {
            rating: makeData({
              type: new Float32(),
              data: Float32Array.from(pairs, () => (1 + Math.floor(random() * 10)) / 2),
            }),
            timestamp: makeData({
              type: new Int64(),
              data: BigInt64Array.from(pairs, () => BigInt(1_600_000_000 + Math.floor(random() * 1e8))),
            }),
          }),
    };
    const fields = Object.entries(columns).map(([name, { type }]) => new Field(name, type, false));
    const children = Object.values(columns);
    yield new RecordBatch(
      new Schema(fields),
      makeData({ type: new Struct(fields), length, nullCount: 0, children }),
    );
  }
}

async function make(): Promise<void> {
  await using session = await Session.create({ device: 'cpu' });
  const options = { rowGroupSize: 1_000_000, overwrite: true };
  for (let file = 0; file < FILES; file++)
    await session
      .from(batches(FILE_ROWS, randomOf(12_345 + 7919 * file)))
      .write.parquet(join(folder, 'rows', `part-${String(file).padStart(2, '0')}.parquet`), options);
  const other = batches(OTHER_ROWS, randomOf(1), (row) => (row * 1_234_577) % OTHER_ROWS);
  await session.from(other).write.parquet(join(folder, 'other.parquet'), options);
}

async function measure(): Promise<void> {
  const start = performance.now();
  await using session = await Session.create({ device: 'cpu', workers: 2, memoryBudget });
  const rows = session.read.parquet(join(folder, 'rows', '*.parquet'));
  const plans: Record<string, () => Dataset> = {
    group: () => rows.groupBy('user', 'item').agg(count(), mean('rating')),
    sort: () => rows.orderBy('user', 'timestamp'),
    distinct: () => rows.select('user', 'item').distinct(),
    join: () => rows.join(session.read.parquet(join(folder, 'other.parquet')), ['user', 'item']),
  };
  let found = 0;
  for await (const { numRows } of plans[mode]()) found += numRows;
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;
  console.log(
    `${mode} within ${memoryBudget}: ${found} rows in ${seconds} s, peak ${Math.round(peak)} MiB of the whole process`,
  );
}
