import { afterAll, expect, it } from 'vitest';
import { CpuDevice } from '../../cpu/device.ts';
import { DataError } from '../../engine/errors.ts';
import { sharedArray } from '../../engine/partition.ts';

const device = new CpuDevice({ threads: 2, handlers: new URL('../support/given-handlers.ts', import.meta.url) });
afterAll(() => device.close());

it('handlers of a given module run in the threads, wait, and answer with values', async () => {
  const numbers = { name: 'numbers', partition: 0, version: 0 };
  device.put(numbers, { layout: 'numbers', rows: 3, columns: { values: Object.assign(sharedArray(Float64Array, 3), { 0: 1, 1: 2, 2: 3 }) } });
  const results = await Promise.all(Array.from({ length: 8 }, (_, start) => device.run({ kernel: 'sum', inputs: { numbers }, outputs: {}, params: { start } })));
  expect(results.map(({ values }) => values.sum)).toEqual(Array.from({ length: 8 }, (_, start) => start + 6));
});

it('an error of such a handler keeps its class and details, and the thread goes on', async () => {
  const failed = await Promise.allSettled(Array.from({ length: 4 }, () => device.run({ kernel: 'fail', inputs: {}, outputs: {}, params: {} })));
  for (const one of failed) {
    const reason = (one as PromiseRejectedResult).reason;
    expect(reason).toBeInstanceOf(DataError);
    expect(reason).toMatchObject({ summary: 'no such row', details: { file: 'ratings.parquet' } });
  }
  expect((await device.run({ kernel: 'rest', inputs: {}, outputs: {}, params: {} })).values).toEqual({});
});

it('a task that neither the device nor the module knows is an error that names it', async () => {
  await expect(device.run({ kernel: 'juggle', inputs: {}, outputs: {}, params: {} })).rejects.toThrow('no CPU handler is registered for the task juggle');
  const bare = new CpuDevice({ threads: 1 });
  await expect(bare.run({ kernel: 'sum', inputs: {}, outputs: {}, params: {} })).rejects.toThrow('no CPU handler is registered for the task sum');
  await bare.close();
});
