/** Rows divided by an exchange: the same rows in parts, for any number of threads, in memory and in files. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordBatch } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { col, type Dataset, UsageError } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const ROWS = 12_000;
const PARTS = 7;

beforeAll(async () => {
  const line = (i: number) => `${i},${i % 997},${i % 5 === 0 ? '' : `word ${i % 31}`},${(i % 10) / 2}\n`;
  const lines = Array.from({ length: ROWS }, (_, i) => line(i));
  writeFileSync(path('rows.csv'), `row,user,word,rating\n${lines.join('')}`);
  const session = await open(1);
  await session.read.csv(path('rows.csv')).write.parquet(path('rows.parquet'), { rowGroupSize: 1000 });
});

const open = (workers: number) => cpuSession({ workers, splitBytes: 20_000 });

/** The rows, and of each part the keys that it has. */
async function partsOf(rows: Dataset, key: string): Promise<{ rows: string[]; keys: Set<string>[] }> {
  const found: string[] = [];
  const keys: Set<string>[] = [];
  for await (const batch of rows) {
    found.push(...batch.toArray().map((row: unknown) => JSON.stringify(row)));
    keys.push(keysOf(batch, key));
  }
  return { rows: found, keys };
}

function keysOf(batch: RecordBatch, key: string): Set<string> {
  return new Set(Array.from({ length: batch.numRows }, (_, row) => String(batch.getChild(key)?.get(row))));
}

describe('rows that are divided among parts', () => {
  it.each(['rows.parquet', 'rows.csv'])(
    '%s: are all there, rows of a key together, in their order',
    async (name) => {
      const session = await open(3);
      const read = await session.read.any(path(name));
      const expected = (await read.toArray()).map((row) => JSON.stringify(row));
      const { rows, keys } = await partsOf(read.repartition(PARTS, 'word'), 'word');
      expect(rows.toSorted()).toEqual(expected.toSorted());
      // Batches of a part are consecutive: a key does not occur again after the next part has started.
      const left = new Set<string>();
      keys.forEach((own, i) => {
        for (const key of own) expect(left.has(key), key).toBe(false);
        for (const key of keys[i - 1] ?? []) if (!own.has(key) || own.size > 20) left.add(key);
      });
      const ofKey = (key: string, all: readonly string[]) =>
        all.filter((row) => row.includes(`"word":${key}`));
      for (const key of ['"word 3"', 'null']) expect(ofKey(key, rows)).toEqual(ofKey(key, expected));
    },
  );

  it('are divided evenly without a key', async () => {
    const session = await open(2);
    const rows = session.read.parquet(path('rows.parquet')).repartition(3);
    const found = (await rows.select('row').toArray()).map(({ row }) => Number(row));
    expect(found.toSorted((a, b) => a - b)).toEqual(Array.from({ length: ROWS }, (_, i) => i));
    expect(await rows.count()).toBe(ROWS);
  });

  it('come from a stream, from rows in memory and from none', async () => {
    const session = await open(2);
    const closure = session.read.parquet(path('rows.parquet')).mapBatches((batch) => batch);
    expect(await closure.repartition(4, 'user').count()).toBe(ROWS);
    const few = session.fromRows([{ a: 1 }, { a: 2 }, { a: 1 }]);
    expect((await few.repartition(2, 'a').toArray()).map(({ a }) => Number(a)).toSorted()).toEqual([1, 1, 2]);
    expect(await few.filter(col('a').gt(5)).repartition(2, 'a').toArray()).toEqual([]);
    const twice = session.read.parquet(path('rows.parquet')).repartition(5, 'user').repartition(3, 'word');
    expect(await twice.count()).toBe(ROWS);
  });

  it('are planned and measured by explain', async () => {
    const session = await open(3);
    const rows = session.read.parquet(path('rows.parquet')).select('row', 'user').repartition(PARTS, 'user');
    const text = await rows.explain({ analyze: true });
    expect(text).toMatch(/exchange by hash of user to 7 parts, about [\d.]+ KiB in memory/);
    expect(text).toContain('Measured\n');
    expect(text).toMatch(
      /exchange by hash of user, planned about [\d.]+ KiB of input: 12,000 rows in \d+ tasks, [\d.]+ KiB made/,
    );
  });

  it('refuses bad numbers and unknown columns', async () => {
    const session = await open(2);
    const rows = session.read.parquet(path('rows.parquet'));
    expect(() => rows.repartition(0)).toThrow(UsageError);
    expect(() => rows.repartition(1.5)).toThrow(
      'repartition takes a number of parts from 1 to 1024, got 1.5',
    );
    await expect(rows.repartition(2, 'reader').count()).rejects.toThrow(/"reader"/);
  });
});
