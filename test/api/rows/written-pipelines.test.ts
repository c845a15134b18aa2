/**
 * Threads that read rows also encode them: the files are the same for any number of threads, in the order of
 * rows.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { col, type Dataset, RowSource, type Session, type Sink, UsageError } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const ROWS = 40_000;
const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const sessions: Session[] = [];

beforeAll(async () => {
  const session = await cpuSession({ workers: 1 });
  const values = Array.from({ length: ROWS }, (_, i) => ({
    i,
    x: (i * 7919) % 1000,
    t: i === 33_333 ? 'none' : `${i % 13}`,
  }));
  await session.fromRows(values).write.parquet(path('rows.parquet'), { rowGroupSize: 2000 });
  for (const workers of [1, 3]) sessions.push(await cpuSession({ workers, splitBytes: 12_000 }));
});

const rowsOf = (session: Session) => session.read.parquet(path('rows.parquet'));

async function groupsOf(name: string): Promise<number[][]> {
  const files = await new ParquetSource(path(name)).files();
  return files.map(({ rowGroups }) => rowGroups.map(({ rows }) => rows));
}

/** Writes with each session, and returns the row groups of the files, which must be the same. */
async function written(
  name: string,
  rows: (all: Dataset) => Dataset,
  options: Parameters<Dataset['write']['parquet']>[1] = {},
): Promise<number[][]> {
  const hashes: string[] = [];
  for (const session of sessions) {
    await rows(rowsOf(session)).write.parquet(path(name), { overwrite: true, ...options });
    const hash = createHash('sha256');
    for (const file of readdirSync(path(name)).sort()) hash.update(readFileSync(join(path(name), file)));
    hashes.push(hash.digest('hex'));
  }
  expect(new Set(hashes).size).toBe(1);
  return groupsOf(name);
}

const doubled = (rows: Dataset) => rows.filter(col('x').ge(100)).select('i', col('x').times(2).as('y'));

describe('a pipeline into a folder', () => {
  it('has groups and parts of at most so many rows, in the order of rows', async () => {
    const groups = await written('parts', doubled, { rowGroupSize: 1500, rowsPerPart: 4000 });
    expect(groups.length).toBeGreaterThan(8);
    for (const part of groups) {
      expect(Math.max(...part)).toBeLessThanOrEqual(1500);
      expect(part.reduce((sum, rows) => sum + rows, 0)).toBeLessThanOrEqual(4000);
    }
    const query = `SELECT i, y FROM '${path('parts')}/*.parquet'`;
    const expected = `SELECT i, x * 2 AS y FROM '${path('rows.parquet')}' WHERE x >= 100 ORDER BY i`;
    expect((await duckRows(query)).map(String)).toEqual((await duckRows(expected)).map(String));
  });

  it('puts the few rows that tasks leave together', async () => {
    const some = (rows: Dataset) => rows.filter(col('x').lt(100));
    expect(await written('few', some)).toEqual([[ROWS / 10]]);
    expect(await written('few-by-group', some, { rowGroupSize: 1000, rowsPerPart: 2500 })).toSatisfy(
      (parts: number[][]) => parts.flat().every((rows) => rows >= 250 && rows <= 1000),
    );
  });

  it('keeps texts, lists of rows of a limit, and unions', async () => {
    await written('texts', (rows) => rows.filter(col('x').lt(500)));
    const texts = `SELECT t FROM '${path('texts')}/*.parquet'`;
    const expected = `SELECT t FROM '${path('rows.parquet')}' WHERE x < 500 ORDER BY i`;
    expect(await duckRows(texts)).toEqual(await duckRows(expected));
    await written('limited', (rows) => rows.union(rows).limit(ROWS + 10));
    const last = `SELECT count(*)::INT, sum(i)::DOUBLE FROM '${path('limited')}/*.parquet'`;
    expect(await duckRows(last)).toEqual([[ROWS + 10, (ROWS * (ROWS - 1)) / 2 + 45]]);
  });
});

describe('after a failure', () => {
  it('of a row in a thread nothing is left, and the error names it', async () => {
    for (const session of sessions) {
      const cast = rowsOf(session).cast({ t: 'int32' });
      await expect(cast.write.parquet(path('failed'))).rejects.toThrow(/'none' is no int32 .*rows\.parquet/);
    }
    expect(existsSync(path('failed'))).toBe(false);
    expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  it('of a cancellation nothing is left, and the old output stays', async () => {
    await written('kept', doubled);
    const before = readdirSync(path('kept'));
    for (const session of sessions) {
      const controller = new AbortController();
      const writing = doubled(rowsOf(session)).write.parquet(path('kept'), {
        overwrite: true,
        signal: controller.signal,
        onEvent: (event) => event.type === 'phase-start' && event.phase === 'write' && controller.abort(),
      });
      await expect(writing).rejects.toThrow(/cancel/i);
    }
    expect(readdirSync(path('kept'))).toEqual(before);
    expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
  });
});

describe('runInto', () => {
  it('gives the result of a sink of the caller, which gets the columns that it needs', async () => {
    const fields: string[][] = [];
    const counts: Sink<number> = {
      name: 'count-all',
      describe: () => ({}),
      requiredColumns: () => ['x'],
      async consume(input) {
        fields.push(input.schema.fields.map(({ name }) => name));
        let rows = 0;
        for await (const batch of input) rows += batch.numRows;
        return rows;
      },
    };
    const source = new RowSource([
      { i: 1, x: 2 },
      { i: 2, x: 3 },
    ]);
    for (const session of sessions) expect(await session.source(source).runInto(counts)).toBe(2);
    expect(await rowsOf(sessions[1]).runInto(counts)).toBe(ROWS);
    expect(fields.at(-1)).toEqual(['x']);
    const wrong = rowsOf(sessions[0]).runInto(counts, { signals: 1 } as never);
    await expect(wrong).rejects.toThrow(UsageError);
  });
});
