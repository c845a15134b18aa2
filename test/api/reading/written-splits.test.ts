/**
 * Data sets that are written while threads read their splits are the same as data sets read as one stream.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { CancelledError, DataError } from '../../../engine/errors.ts';
import { openSink } from '../../../connectors/open-sink.ts';
import { readSplit } from '../../../connectors/read-split.ts';
import { runInto } from '../../../engine/stream/logical-plan.ts';
import { inThreads } from '../../../operators/pipeline/read-in-threads.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { duckdb } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

const ROWS = 15_000;
const lines = Array.from(
  { length: ROWS },
  (_, i) =>
    `${i % 997},${i * 3},${(i % 10) / 2},"${i % 500 === 0 ? `two\nlines, "" and ${i}` : `word ${i}`}"\n`,
);

beforeAll(async () => {
  writeFileSync(path('rows.csv'), `user,item,rating,word\n${lines.join('')}`);
  writeFileSync(path('rows.csv.gz'), gzipSync(readFileSync(path('rows.csv'))));
  const session = await open(1, 1e9);
  const rows = session.read.csv(path('rows.csv'));
  await rows.write.parquet(path('rows.parquet'), { rowGroupSize: 2000 });
  await rows.write.parquet(path('parts'), { rowsPerPart: 7000, rowGroupSize: 3000 });
  await rows.write.ndjson(path('rows.ndjson'));
  await rows.write.arrow(path('rows.arrow'));
});

const open = (workers: number, splitBytes: number) => cpuSession({ workers, splitBytes });

describe('rows that threads read', () => {
  it.each(['rows.csv', 'rows.csv.gz', 'rows.parquet', 'parts', 'rows.ndjson', 'rows.arrow'])(
    'are those of one stream, in their order: %s',
    async (name) => {
      const expected = readFileSync(path('rows.csv'), 'utf8').replaceAll(/"(word \d+)"/g, '$1');
      for (const [workers, splitBytes] of [
        [1, 60_000],
        [4, 20_000],
      ]) {
        const session = await open(workers, splitBytes);
        const ctx = session.context();
        const { plan } = await session.read.any(path(name));
        const { rows } = await runInto(
          inThreads(plan, { readHere: readSplit, splitBytes }),
          await openSink(path('copy.csv'), { overwrite: true }),
          ctx,
        );
        expect(rows).toBe(ROWS);
        // One packed file and one batch of Arrow are a single split each. A single thread only uses tasks
        // for ranges.
        const byTasks =
          !['rows.csv.gz', 'rows.arrow'].includes(name) &&
          (workers > 1 || ['rows.csv', 'rows.ndjson'].includes(name));
        expect((ctx.metrics.get('read-rows')?.runs ?? 0) > 1).toBe(byTasks);
        const text = readFileSync(path('copy.csv'), 'utf8');
        expect(text.replaceAll(/\.0\b/g, '') === expected.replaceAll(/\.0\b/g, '')).toBe(true);
      }
    },
  );

  it('may be far more than they are as stored: those come batch by batch', async () => {
    await (
      await duckdb()
    ).run(
      `COPY (SELECT repeat('x', 64000) AS word, i AS item FROM range(600) t(i)) TO '${path('wide.parquet')}' (FORMAT parquet, ROW_GROUP_SIZE 600)`,
    );
    const session = await open(3, 1);
    const { rows } = await session.read
      .parquet(path('wide.parquet'))
      .write.parquet(path('wide-copy.parquet'));
    expect(rows).toBe(600);
    expect(
      (
        await (
          await duckdb()
        ).runAndReadAll(
          `SELECT count(*), min(length(word)), sum(item)::INTEGER FROM '${path('wide-copy.parquet')}'`,
        )
      ).getRowsJS(),
    ).toEqual([[600n, 64_000n, 179_700]]);
  });
});

describe('bad conditions', () => {
  it('name the file and the line, as one stream does', async () => {
    writeFileSync(
      path('bad.csv'),
      `user,item,rating\n${'1,2,3\n'.repeat(9000)}4,5,6,7\n${'1,2,3\n'.repeat(9000)}`,
    );
    for (const splitBytes of [1e9, 30_000]) {
      const session = await open(3, splitBytes);
      const error = await session.read
        .csv(path('bad.csv'))
        .write.parquet(path('never.parquet'))
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DataError);
      expect(String(error)).toMatch(/line 9002\b.*bad\.csv/);
    }
    const whole = readFileSync(path('rows.parquet'));
    whole.fill(0xff, whole.length >> 1, (whole.length >> 1) + 300);
    writeFileSync(path('bad.parquet'), whole);
    const session = await open(3, 3000);
    await expect(
      session.read.parquet(path('bad.parquet')).write.csv(path('never.csv')),
    ).rejects.toMatchObject({ name: 'DataError', details: { file: path('bad.parquet') } });
    expect(readdirSync(folder).filter((name) => name.includes('never'))).toEqual([]);
  });

  it('cancelled while threads read, nothing is left', async () => {
    const session = await open(3, 1000);
    const controller = new AbortController();
    const writing = session.read.parquet(path('rows.parquet')).write.parquet(path('cancelled.parquet'), {
      signal: controller.signal,
      onEvent: ({ type }) => type === 'phase-start' && setImmediate(() => controller.abort()),
    });
    await expect(writing).rejects.toThrow(CancelledError);
    expect(readdirSync(folder).filter((name) => name.includes('cancelled'))).toEqual([]);
  });
});
