import { afterAll, beforeAll } from 'vitest';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { Device } from '../../../engine/run/device.ts';
import type { Task } from '../../../engine/task.ts';
import type { deviceKinds } from '../../support/devices/device-kinds.ts';

/** Ratings of the rows of a small block. */
export const lengths = [0, 1, 2, 3, 4, 5, 300, 0, 900, 9];
export const COLUMNS = 120;
export const ref = (name: string): PartitionRef => ({ name, partition: 0, version: 0 });

export function matrix(rows: number, rank: number, seed: number): Partition {
  const values = sharedArray(Float32Array, rows * rank);
  const random = new CounterRandom(seed);
  for (let i = 0; i < values.length; i++) values[i] = (2 * random.uniform(i) - 1) / Math.sqrt(rank);
  return { layout: 'factors', rows, columns: { values } };
}

export function vector(layout: string, length: number, seed: number): Partition {
  const values = sharedArray(Float32Array, length);
  const random = new CounterRandom(seed);
  for (let i = 0; i < length; i++) values[i] = random.uniform(i) - 0.5;
  return { layout, rows: length, columns: { values } };
}

/** Runs single tasks on one device, which is opened before the tests of a suite and closed after them. */
export function taskRunner({ open, skip }: (typeof deviceKinds)[number]) {
  let device: Device;
  beforeAll(async () => {
    if (skip === undefined) device = await open();
  });
  afterAll(() => (device as Device | undefined)?.close());

  /** Runs a task on partitions that are there for it alone; `given` are put, `read` are fetched. */
  async function run<Name extends string>(
    kernel: string,
    params: Task['params'],
    given: Readonly<Record<string, Partition>>,
    read: readonly Name[] = [],
  ) {
    const inputs = Object.fromEntries(Object.keys(given).map((name) => [name, ref(name)]));
    const outputs = Object.fromEntries(read.map((name) => [name, ref(name)]));
    for (const [name, partition] of Object.entries(given)) device.put(ref(name), partition);
    const { values, metrics } = await device.run({ kernel, params, inputs, outputs });
    const fetched = Object.fromEntries(
      await Promise.all(read.map(async (name) => [name, (await device.fetch(ref(name))).columns])),
    );
    for (const name of [...Object.keys(given), ...read]) device.release(ref(name));
    return { values, metrics, fetched: fetched as Record<Name, Partition['columns']> };
  }

  return {
    get device(): Device {
      return device;
    },
    run,
  };
}
