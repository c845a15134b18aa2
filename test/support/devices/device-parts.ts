/** Partitions of tests on a device: made, named, and released together. */
import type { JsonObject } from '../../../engine/json.ts';
import {
  type MatrixShape,
  type Partition,
  type PartitionRef,
  sharedArray,
} from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { Device } from '../../../engine/run/device.ts';
import type { KernelName, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { valuesOfTask } from './values-of-task.ts';

export const ref = (name: string, partition = 0): PartitionRef => ({ name, partition, version: 0 });

/** A matrix of random numbers about 0.15 / √columns. */
export function numbers(layout: string, rows: number, columns: number, seed: number): Partition {
  const values = sharedArray(Float32Array, rows * columns);
  const random = new CounterRandom(seed);
  for (let i = 0; i < values.length; i++) values[i] = (2 * random.uniform(i) - 0.7) / Math.sqrt(columns);
  return { layout, rows, columns: { values } };
}

/** The rows [first, last) of a matrix, or of a vector. */
export function slice(
  { layout, rows, columns: { values } }: Partition,
  first: number,
  last: number,
): Partition {
  const width = values.length / rows;
  const own = sharedArray(Float32Array, (last - first) * width);
  own.set((values as Float32Array).subarray(first * width, last * width));
  return { layout, rows: last - first, columns: { values: own } };
}

/** The partitions that a test puts on a device, until it releases them. */
export class DeviceParts {
  readonly #device: Device;
  #held: PartitionRef[] = [];

  constructor(device: Device) {
    this.#device = device;
  }

  put(name: string, partition: Partition, part = 0): PartitionRef {
    this.#device.put(ref(name, part), partition);
    this.#held.push(ref(name, part));
    return ref(name, part);
  }

  allocate(
    name: string,
    rows: number,
    columns: number,
    more: Partial<MatrixShape> = {},
    part = 0,
  ): PartitionRef {
    const { strideStep } = this.#device.info;
    this.#device.allocate(ref(name, part), {
      rows,
      columns,
      stride: Math.ceil(columns / strideStep) * strideStep,
      ...more,
    });
    this.#held.push(ref(name, part));
    return ref(name, part);
  }

  run(
    kernel: KernelName,
    params: JsonObject,
    inputs: Readonly<Record<string, PartitionRef>>,
    outputs: Readonly<Record<string, PartitionRef>>,
  ): ReturnType<Device['run']> {
    return this.#device.run({ kernel, params, inputs, outputs });
  }

  async fetched(of: PartitionRef): Promise<Float32Array> {
    return (await this.#device.fetch(of)).columns.values as Float32Array;
  }

  /** The device's choice among its kernels for a problem; none on a device with one kernel. */
  async chosen(params: UpdateProblem): Promise<JsonObject> {
    if (!this.#device.info.choosesKernels) return {};
    const { variant, precision, ratingScale } = await valuesOfTask(this.#device, {
      kernel: 'choose-update',
      inputs: {},
      outputs: {},
      params,
    });
    return { variant, precision, ratingScale };
  }

  release(refs: readonly PartitionRef[] = this.#held): void {
    for (const one of refs) this.#device.release(one);
    this.#held = this.#held.filter(
      ({ name, partition }) => !refs.some((one) => one.name === name && one.partition === partition),
    );
  }
}
