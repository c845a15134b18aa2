import {
  isShared,
  type MatrixShape,
  type Partition,
  partitionKey,
  type PartitionRef,
  sharedArray,
} from '../partition.ts';
import { Garbage } from './garbage.ts';
import type { FileMemories, HostStore, WireMemory } from './device.ts';
import { hostMeter, type MemoryMeter } from './memory-meter.ts';
import type { DeviceInfo } from '../plan/device-info.ts';
import { HOST } from '../plan/place.ts';

const info: DeviceInfo = {
  place: HOST,
  kind: 'cpu',
  parallelism: 0,
  inOrder: false,
  wholePasses: false,
  ownMemory: false,
  capacityBytes: null,
  strideStep: 1,
  description: 'the memory of this process',
};

/** Allocations are rounded up to this size, so that partitions of similar size can reuse the memory. */
const MEMORY_STEP = 1 << 20;

/**
 * The place `host`: stores partitions in host memory by name, mostly while they are sent to or from a device.
 * No task runs here.
 */
export class HostMemory implements HostStore {
  readonly info = info;
  readonly memory: MemoryMeter = hostMeter;
  readonly #partitions = new Map<string, Partition>();
  /** The memory that `take` returned: memory in use, and memory that is free for reuse, by size in bytes. */
  readonly #taken = new Set<object>();
  readonly #free = new Map<number, WireMemory[]>();
  readonly #files: FileMemories | undefined;
  /**
   * Counts released memory that `take` had not returned. It must be collected as garbage in time: otherwise a
   * replaced partition stays in memory together with its new version.
   */
  readonly #garbage = new Garbage();

  /** `files`: creates the memory files that `take` uses, as long as the system has room for them. */
  constructor(files?: FileMemories) {
    this.#files = files;
  }

  put(ref: PartitionRef, partition: Partition): void {
    const key = partitionKey(ref);
    const old = this.#partitions.get(key);
    hostMeter.hold(partition);
    if (old !== undefined) hostMeter.drop(old);
    this.#partitions.set(key, partition);
  }

  allocate(ref: PartitionRef, { layout = 'factors', rows, columns, packed }: MatrixShape): void {
    this.put(ref, {
      layout,
      rows,
      columns: { values: sharedArray(Float32Array, rows * columns) },
      ...(packed ? { packed } : {}),
    });
  }

  run(): Promise<never> {
    return Promise.reject(new Error('host memory runs no tasks'));
  }

  get(ref: PartitionRef): Partition {
    const found = this.#partitions.get(partitionKey(ref));
    if (found === undefined) throw new Error(`partition ${partitionKey(ref)} is not in host memory`);
    const { stored, ...partition } = found;
    return stored === undefined ? found : { ...partition, columns: { values: stored.read() } };
  }

  async fetch(ref: PartitionRef): Promise<Partition> {
    return this.get(ref);
  }

  take(bytes: number): WireMemory {
    const size = MEMORY_STEP * Math.ceil(bytes / MEMORY_STEP);
    // The memory released last may still be in a cache.
    const memory = this.#free.get(size)?.pop() ?? this.#files?.make(size) ?? new SharedArrayBuffer(size);
    this.#taken.add(memory);
    return memory;
  }

  release(ref: PartitionRef): void {
    const key = partitionKey(ref);
    const found = this.#partitions.get(key);
    if (found === undefined) return;
    for (const { buffer } of Object.values(found.columns)) {
      if (isShared(buffer) && this.#taken.delete(buffer)) this.#giveBack(buffer, buffer.byteLength);
      else if (!found.reused) this.#garbage.add(buffer.byteLength);
    }
    const files = found.inFiles?.memory;
    if (files !== undefined && this.#taken.delete(files)) this.#giveBack(files, files.bytes);
    this.#partitions.delete(key);
    hostMeter.drop(found);
    this.#garbage.collectIfDue();
  }

  #giveBack(memory: WireMemory, bytes: number): void {
    const kept = this.#free.get(bytes);
    if (kept === undefined) this.#free.set(bytes, [memory]);
    else kept.push(memory);
  }

  async trim(): Promise<void> {}

  async close(): Promise<void> {
    for (const partition of this.#partitions.values()) hostMeter.drop(partition);
    this.#partitions.clear();
    this.#free.clear();
    this.#taken.clear();
    this.#files?.close();
  }
}
