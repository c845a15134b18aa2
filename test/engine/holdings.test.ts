/** The partitions of a run are released once, also those of a task that ends after the run. */
import { expect, it } from 'vitest';
import { Holdings } from '../../engine/run/holdings.ts';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import type { Task } from '../../engine/task.ts';
import { RecordingDevice } from '../support/steps/recording-device.ts';
import { contextOf, gpuInfo } from '../support/steps/small-problems.ts';

const order = { name: 'order', partition: 0, version: 0 };
const task: Task = {
  kernel: 'batch-order',
  inputs: {},
  outputs: { order },
  params: { name: 'order', batches: 1 },
};

/** A run on a device that works in order, so that frees may be sent before a task ends: `end` ends its task. */
function begin() {
  const waits = Promise.withResolvers<void>();
  const device = new RecordingDevice(gpuInfo(0), [], {
    before: (_, verb) => (verb === 'run' ? waits.promise : undefined),
  });
  const holdings = new Holdings(contextOf(new LocalExecutor([device])));
  const [held] = holdings.ctx.executor.devices;
  const running = held.run(task);
  const end = async () => {
    waits.resolve();
    await running;
  };
  return { device, holdings, held, end };
}

it('a task that ends after its run leaves no output on the device', async () => {
  const { device, holdings, end } = begin();
  await holdings.close();
  await end();
  expect(device.held).toEqual([]);
});

it('a run releases the output of a task once, if a later step has freed it before the task ended', async () => {
  const { device, holdings, held, end } = begin();
  held.release(order);
  await end();
  await holdings.close();
  expect(device.log.filter(({ verb }) => verb === 'release')).toHaveLength(1);
});

it('a run releases the output of a task that no step has freed', async () => {
  const { device, holdings, end } = begin();
  await end();
  expect(device.held).toHaveLength(1);
  await holdings.close();
  expect(device.held).toEqual([]);
});
