import { type MatrixShape, type Partition, partitionKey, type PartitionRef, sharedArray } from '../partition.ts';
import type { HostStore } from './device.ts';
import { hostMeter, type MemoryMeter } from './memory-meter.ts';
import type { DeviceInfo } from '../plan/device-info.ts';
import { HOST } from '../plan/place.ts';

const info: DeviceInfo = { place: HOST, kind: 'cpu', parallelism: 0, inOrder: false, wholePasses: false, ownMemory: false, capacityBytes: null, strideStep: 1, description: 'the memory of this process' };

/** Partitions in host memory, by name: those that wait for a device or come back from one. It runs no tasks. */
export class HostMemory implements HostStore {
  readonly info = info;
  readonly memory: MemoryMeter = hostMeter;
  readonly #partitions = new Map<string, Partition>();

  put(ref: PartitionRef, partition: Partition): void {
    this.release(ref);
    this.#partitions.set(partitionKey(ref), partition);
    hostMeter.hold(partition);
  }

  allocate(ref: PartitionRef, { layout = 'factors', rows, columns }: MatrixShape): void {
    this.put(ref, { layout, rows, columns: { values: sharedArray(Float32Array, rows * columns) } });
  }

  run(): Promise<never> {
    return Promise.reject(new Error('host memory runs no tasks'));
  }

  get(ref: PartitionRef): Partition {
    const found = this.#partitions.get(partitionKey(ref));
    if (found === undefined) throw new Error(`partition ${partitionKey(ref)} is not in host memory`);
    return found;
  }

  async fetch(ref: PartitionRef): Promise<Partition> {
    return this.get(ref);
  }

  release(ref: PartitionRef): void {
    const key = partitionKey(ref);
    const found = this.#partitions.get(key);
    if (found === undefined) return;
    this.#partitions.delete(key);
    hostMeter.drop(found);
  }

  async trim(): Promise<void> {}

  async close(): Promise<void> {
    for (const partition of this.#partitions.values()) hostMeter.drop(partition);
    this.#partitions.clear();
  }
}
