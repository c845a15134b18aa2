/** Bad rows, damaged files, failing threads and cancelled runs, where threads read splits. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { RatingInput, type RatingOptions } from '../../../api/rating-input.ts';
import { readFooter } from '../../../connectors/parquet/footer.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { CpuDevice } from '../../../cpu/device.ts';
import type { ProgressEvent } from '../../../engine/events.ts';
import { RunMetrics } from '../../../engine/metrics.ts';
import type { PartitionRef } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { andThen, fromSource } from '../../../engine/stream/logical-plan.ts';
import { workerFile } from '../../../engine/threads/worker-file.ts';
import { readRatings } from '../../../operators/ratings/reading/read-ratings.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { duckdb } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

async function write(name: string, rating = '(i % 10)::FLOAT'): Promise<void> {
  await (
    await duckdb()
  ).run(
    `COPY (SELECT (i % 501)::INTEGER AS "user", (i % 97)::INTEGER AS item, ${rating} AS rating FROM range(20000) t(i)) TO '${path(name)}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`,
  );
}

beforeAll(async () => {
  await write('good.parquet');
  await write(
    'bad.parquet',
    "CASE WHEN i % 3000 = 2900 THEN NULL WHEN i % 3000 = 2901 THEN 'nan'::FLOAT ELSE (i % 10)::FLOAT END",
  );
  mkdirSync(path('bad'));
  for (const file of ['0-good', '1-bad', '2-bad'])
    copyFileSync(path(`${file.slice(2)}.parquet`), path(`bad/${file}.parquet`));
  // The data pages of row group 5 are overwritten.
  const { rowGroups } = await readFooter(path('good.parquet'));
  const bytes = readFileSync(path('good.parquet'));
  for (const { start, bytes: length } of rowGroups[5].columns) bytes.fill(0xff, start, start + length);
  writeFileSync(path('damaged.parquet'), bytes);
});

/** The events and the error of reading a file. */
async function outcome(file: string, splitBytes: number, options: RatingOptions = {}) {
  const session = await cpuSession({ workers: 3, splitBytes });
  const events: ProgressEvent[] = [];
  const ctx = session.context({ onEvent: (event) => void events.push(event) });
  const error = await Holdings.within(ctx, (held) =>
    new RatingInput(options).index(session.read.parquet(path(file)), undefined, held),
  ).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  // The session works on.
  const { rows } = await Holdings.within(session.context(), (held) =>
    new RatingInput({}).index(session.read.parquet(path('good.parquet')), undefined, held),
  );
  expect(rows).toBe(20000);
  return { error, warnings: events.filter(({ type }) => type === 'warning') };
}

describe('threads that read splits', () => {
  it.each(['bad.parquet', 'bad'])(
    'count bad rows with the place of the first, as one stream does: %s',
    async (file) => {
      for (const onBadRows of ['skip', 'error'] as const) {
        const [stream, splits] = [
          await outcome(file, 1e9, { onBadRows }),
          await outcome(file, 1, { onBadRows }),
        ];
        expect(splits).toEqual(stream);
        if (onBadRows === 'error')
          expect(String(splits.error)).toMatch(
            /(12|24) bad rows, the first in .*bad.*row group 1, row 2901: rating is null/,
          );
        else
          expect(splits.warnings).toMatchObject([
            { text: expect.stringMatching(/^left out (12|24) bad rows/) },
          ]);
      }
    },
  );

  it('name the file and the row group of damaged data, as one stream does', async () => {
    const [stream, splits] = [await outcome('damaged.parquet', 1e9), await outcome('damaged.parquet', 1)];
    expect(String(splits.error)).toBe(String(stream.error));
    expect(String(splits.error)).toMatch(/damaged\.parquet, row group 5/);
  });
});

/**
 * Reads files on a device of its own; records the tasks and their outputs. `onTask` is called at the start
 * of each task.
 */
async function observed(
  files: readonly string[],
  onTask: (number: number, abort: () => void) => void = () => {},
) {
  const device = new CpuDevice({
    threads: 2,
    handlers: workerFile(new URL('../../support/damage/failing-reader.js', import.meta.url)),
  });
  const outputs: PartitionRef[] = [];
  let [started, ended] = [0, 0];
  const run = device.run.bind(device);
  const aborting = new AbortController();
  device.run = async (task, signal) => {
    outputs.push(...Object.values(task.outputs));
    onTask(started++, () => aborting.abort());
    return run(task, signal).finally(() => ended++);
  };
  const ctx: ExecutionContext = {
    signal: aborting.signal,
    executor: new LocalExecutor([device]),
    events: () => {},
    metrics: new RunMetrics(),
  };
  const plan = andThen(
    fromSource(new ParquetSource(files.map((file) => path(file)))),
    new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }),
  );
  const error = await Holdings.within(ctx, (held) => readRatings(plan, { splitBytes: 1 }, held)).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(ended).toBe(started);
  for (const ref of outputs) await expect(device.fetch(ref)).rejects.toThrow('is not on device');
  await device.close();
  return { error, started };
}

describe('a thread that fails', () => {
  it.each([
    ['throws', 'read: a thread failed: a mistake in the reader'],
    ['ends', 'read: a thread of the CPU ended in the middle of the task read-ratings '],
  ])('in the middle ends the reading, and the error names the file: it %s', async (name, message) => {
    mkdirSync(path(name));
    for (const file of ['0', `1-${name}`, '2'])
      copyFileSync(path('good.parquet'), path(`${name}/${file}.parquet`));
    const { error, started } = await observed(
      ['0', `1-${name}`, '2'].map((file) => `${name}/${file}.parquet`),
    );
    expect(String(error)).toContain(message);
    expect(String(error)).toContain(`1-${name}.parquet`);
    // Of 30 tasks, the tasks after the failed one do not start, except a few that were already running.
    expect(started).toBeLessThan(20);
  });
});

describe('a cancelled reading', () => {
  it('ends at each task, and leaves nothing', async () => {
    const { started, error } = await observed(['good.parquet']);
    expect(error).toBeUndefined();
    for (const at of [0, started >> 1]) {
      const cancelled = await observed(['good.parquet'], (number, abort) => {
        if (number === at) abort();
      });
      expect(cancelled.error).toMatchObject({ code: 'CANCELLED' });
      expect(cancelled.started).toBeLessThanOrEqual(at + 5);
    }
  });
});
