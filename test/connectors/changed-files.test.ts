/** A file that changes while it is read is an error, or is read as it was when lines were added to it. */
import { appendFileSync, copyFileSync, renameSync, statSync, truncateSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { Int32, type RecordBatch, Table, vectorFromArray } from 'apache-arrow';
import { beforeAll, describe, expect, test } from 'vitest';
import { openSink } from '../../connectors/open-sink.ts';
import { openSource } from '../../connectors/open-source.ts';
import { readSplit } from '../../connectors/read-split.ts';
import { DataError } from '../../engine/errors.ts';
import type { ProgressEvent } from '../../engine/events.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { everyNth } from '../support/deep.ts';
import { context, streamOf } from './parquet/parquet-testing.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const ROWS = 100_000;
/** Long before the file was written, by any clock. */
const OTHER_TIME = new Date(0);
const endings = ['csv', 'csv.gz', 'ndjson', 'parquet', 'arrow', 'arrows'];
const growing = ['csv', 'ndjson'];
let copies = 0;

beforeAll(async () => {
  const numbers = Array.from({ length: ROWS }, (_, i) => 100_000 + i);
  const column = vectorFromArray(numbers, new Int32());
  const batches = new Table({ user: column, item: column }).batches;
  for (const ending of endings)
    await (
      await openSink(join(folder, `whole.${ending}`))
    ).consume(streamOf(batches[0].schema, batches), context() as never);
});

function copyOf(ending: string): string {
  const file = join(folder, `copy-${copies++}.${ending}`);
  copyFileSync(join(folder, `whole.${ending}`), file);
  return file;
}

/** A run's context, and the warnings that it had. */
function running(): { readonly ctx: ExecutionContext; readonly events: ProgressEvent[] } {
  const events: ProgressEvent[] = [];
  const metrics = new RunMetrics();
  return {
    ctx: { ...context(), metrics, events: (event: ProgressEvent) => void events.push(event) } as never,
    events,
  };
}

const replaced = /another process replaced the file/;
const changes: Readonly<
  Record<string, readonly [change: (file: string, ending: string) => void, error: RegExp]>
> = {
  'cut at a line end': [
    (file) => truncateSync(file, 10 + 14 * 20_000),
    /another process (cut|changed) the file/,
  ],
  'another time': [(file) => utimesSync(file, OTHER_TIME, OTHER_TIME), /another process changed the file/],
  'another file': [(file, ending) => renameSync(copyOf(ending), file), replaced],
};

describe.each(Object.entries(changes))('%s', (name, [change, pattern]) => {
  // Each change of each format in some of the situations.
  const number = Object.keys(changes).indexOf(name);
  const someOf = (situation: number) => everyNth(endings, 3, number + situation);

  test.each(someOf(0))('while %s is read in one stream', async (ending) => {
    const file = copyOf(ending);
    const source = await openSource(file);
    const stream = await source.execute(running().ctx);
    const rows = stream[Symbol.asyncIterator]();
    await rows.next();
    change(file, ending);
    const error = await (async () => {
      for (let next = await rows.next(); !next.done; next = await rows.next());
    })().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DataError);
    expect(String(error)).toMatch(pattern);
    expect(String(error)).toContain(file);
  });

  test.each(someOf(1))('after the last part of %s was read by a thread', async (ending) => {
    const file = copyOf(ending);
    const { ctx } = running();
    const found = await (await openSource(file)).splits?.(ctx, undefined, undefined, 1 << 19);
    for (const split of found!.splits)
      for await (const batch of readSplit(split, found!.schema, { signal: ctx.signal, takesFaults: false }))
        expect(batch.numRows).toBeGreaterThan(0);
    change(file, ending);
    expect(() => found!.whenRead?.()).toThrow(pattern);
  });

  test.each(someOf(2))('before the first pass of a run over %s', async (ending) => {
    const file = copyOf(ending);
    const source = await openSource(file);
    await source.schema();
    change(file, ending);
    const reading = (async () => {
      let rows = 0;
      for await (const { numRows } of await source.execute(running().ctx)) rows += numRows;
      return rows;
    })();
    // All of another file is read.
    if (pattern === replaced) await expect(reading).resolves.toBe(ROWS);
    else await expect(reading).rejects.toThrow(pattern);
    // A file that failed is opened again, as it is now.
    if (ending === 'csv') {
      const { numRows } = (await (await source.execute(running().ctx))[Symbol.asyncIterator]().next())
        .value as RecordBatch;
      expect(numRows).toBeGreaterThan(0);
    }
  });

  test.each(someOf(3))('between two passes of a run over %s', async (ending) => {
    const file = copyOf(ending);
    const { ctx } = running();
    const source = await openSource(file);
    for await (const batch of await source.execute(ctx)) expect(batch.numRows).toBeGreaterThan(0);
    change(file, ending);
    await expect(source.execute(ctx)).rejects.toThrow(pattern);
  });
});

describe('a file to which rows are added', () => {
  const row = { csv: '7,7\n', ndjson: '{"user":7,"item":7}\n' } as Readonly<Record<string, string>>;

  test.each(growing)('%s is read as it was, with one warning', async (ending) => {
    const file = copyOf(ending);
    const { ctx, events } = running();
    const source = await openSource(file);
    let rows = 0;
    for (const pass of [1, 2]) {
      for await (const { numRows } of await source.execute(ctx)) {
        if (rows === 0) appendFileSync(file, row[ending].repeat(1000));
        rows += numRows;
      }
      expect(rows).toBe(pass * ROWS);
    }
    const found = await source.splits?.(ctx, undefined, undefined, 1 << 19);
    rows = 0;
    for (const split of found!.splits)
      for await (const batch of readSplit(split, found!.schema, { signal: ctx.signal, takesFaults: false }))
        rows += batch.numRows;
    found!.whenRead?.();
    expect(rows).toBeGreaterThanOrEqual(ROWS);
    expect(events).toEqual([
      {
        type: 'warning',
        code: 'input-grew',
        text: expect.stringContaining(`${file} grew while it was read: only the`) as string,
      },
    ]);
    // The next run reads the same rows, and what is opened later reads all of them.
    for (const [next, count] of [
      [source, ROWS],
      [await openSource(file), ROWS + 1000],
    ] as const) {
      let all = 0;
      for await (const { numRows } of await next.execute(running().ctx)) all += numRows;
      expect(all).toBe(count);
    }
  });

  test.each(growing)('%s is refused where it was opened in the middle of a row', async (ending) => {
    const file = copyOf(ending);
    truncateSync(file, statSync(file).size - (ending === 'csv' ? 2 : 1));
    const stream = await (await openSource(file)).execute(running().ctx);
    const reading = (async () => {
      for await (const batch of stream) {
        if (batch.numRows > 0) appendFileSync(file, '9\n');
      }
    })();
    await expect(reading).rejects.toThrow(/was writing a row at the end of the file when it was opened/);
  });

  test.each(['parquet', 'arrow', 'arrows'])('%s is refused', async (ending) => {
    const file = copyOf(ending);
    const stream = await (await openSource(file)).execute(running().ctx);
    const reading = (async () => {
      for await (const batch of stream) {
        if (batch.numRows > 0) appendFileSync(file, 'more');
      }
    })();
    await expect(reading).rejects.toThrow(/another process changed the file/);
  });
});
