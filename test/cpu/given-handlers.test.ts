import { afterAll, describe, expect, it } from 'vitest';
import { isRepeatable } from '../../api/devices/open-devices.ts';
import { CpuDevice } from '../../cpu/device.ts';
import { DataError } from '../../engine/errors.ts';
import { sharedArray } from '../../engine/partition.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';

const device = new CpuDevice({
  threads: 2,
  handlers: workerFile(new URL('../support/devices/given-handlers.js', import.meta.url)),
});
afterAll(() => device.close());

it('handlers of a given module run in the threads, wait, and answer with values', async () => {
  const numbers = { name: 'numbers', partition: 0, version: 0 };
  device.put(numbers, {
    layout: 'numbers',
    rows: 3,
    columns: { values: Object.assign(sharedArray(Float64Array, 3), { 0: 1, 1: 2, 2: 3 }) },
  });
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, start) =>
      device.run({ kernel: 'sum', inputs: { numbers }, outputs: {}, params: { start } }),
    ),
  );
  expect(results.map(({ values }) => values.sum)).toEqual(Array.from({ length: 8 }, (_, start) => start + 6));
});

it('an error of such a handler keeps its class and details, and the thread goes on', async () => {
  const failed = await Promise.allSettled(
    Array.from({ length: 4 }, () => device.run({ kernel: 'fail', inputs: {}, outputs: {}, params: {} })),
  );
  for (const one of failed) {
    const reason = (one as PromiseRejectedResult).reason;
    expect(reason).toBeInstanceOf(DataError);
    expect(reason).toMatchObject({ summary: 'no such row', details: { file: 'ratings.parquet' } });
  }
  expect((await device.run({ kernel: 'rest', inputs: {}, outputs: {}, params: {} })).values).toEqual({});
});

it('a thread that collects garbage collects what only a WeakRef refers to', async () => {
  const one = new CpuDevice({
    threads: 1,
    collectBytes: 1,
    handlers: workerFile(new URL('../support/devices/given-handlers.js', import.meta.url)),
  });
  const run = (kernel: string) => one.run({ kernel, inputs: {}, outputs: {}, params: {} });
  const rows = { name: 'rows', partition: 0, version: 0 };
  await run('rest');
  await run('remember');
  one.put(rows, { layout: 'numbers', rows: 1, columns: { values: sharedArray(Float64Array, 1) } });
  one.release(rows);
  expect((await run('recall')).values).toEqual({ kept: false });
  await one.close();
});

it('a closed device says so, not that the partitions it dropped are missing', async () => {
  const closed = new CpuDevice({ threads: 1 });
  const rows = { name: 'rows', partition: 0, version: 0 };
  closed.put(rows, { layout: 'factors', rows: 1, columns: { values: new Float32Array(4) } });
  await closed.close();
  const task = { kernel: 'spill', inputs: { 0: rows }, outputs: {}, params: {} };
  await expect(closed.run(task)).rejects.toThrow('the session is closed');
  await expect(closed.fetch(rows)).rejects.toThrow('the session is closed');
});

describe('a thread that ends by itself', () => {
  const ends = { name: 'ends', partition: 0, version: 0 };
  const run = async (repeatable: boolean, times: number) => {
    const own = new CpuDevice({
      threads: 2,
      handlers: workerFile(new URL('../support/devices/given-handlers.js', import.meta.url)),
      repeatable: () => repeatable,
    });
    own.put(ends, { layout: 'numbers', rows: 1, columns: { values: sharedArray(Float64Array, 1) } });
    try {
      return await Promise.all(
        [1, 2, 3].map(() =>
          own.run({ kernel: 'end', inputs: { numbers: ends }, outputs: {}, params: { times } }),
        ),
      ).then((results) => results.map(({ values }) => values.ended));
    } finally {
      await own.close();
    }
  };

  it('has its task run again by another, where the task may be repeated', async () => {
    expect(await run(true, 2)).toEqual([2, 2, 2]);
  });

  it('is named with the task where it may not, or where threads end again and again', async () => {
    await expect(run(false, 1)).rejects.toThrow(
      /^cpu: a thread of the CPU ended in the middle of the task end \(.*7.*\)\. Run it again/,
    );
    await expect(run(false, 1)).rejects.toMatchObject({
      name: 'DeviceLostError',
      exitCode: 5,
      details: { device: 'cpu' },
    });
    await expect(run(true, 1000)).rejects.toThrow(/in the middle of the task end .*, 3 times/);
  });

  it('ends no fit, since tasks of training by rows can be repeated, and those that step in place cannot', () => {
    expect(['update', 'squared-error', 'read-ratings', 'top-n', 'encode-rows'].map(isRepeatable)).toEqual([
      true,
      true,
      true,
      true,
      true,
    ]);
    expect(['sgd-block', 'scatter-pairs', 'write-factors', 'no such task'].map(isRepeatable)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });
});

it('a task that neither the device nor the module knows is an error that names it', async () => {
  await expect(device.run({ kernel: 'juggle', inputs: {}, outputs: {}, params: {} })).rejects.toThrow(
    'no CPU handler is registered for the task juggle',
  );
  const bare = new CpuDevice({ threads: 1 });
  await expect(bare.run({ kernel: 'sum', inputs: {}, outputs: {}, params: {} })).rejects.toThrow(
    'no CPU handler is registered for the task sum',
  );
  await bare.close();
});
