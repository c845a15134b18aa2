import type { MatrixShape, Partition, PartitionRef } from './partition.ts';
import type { HostMemory } from './run/host-memory.ts';
import type { Place } from './run/place.ts';
import type { Task, TaskResult } from './task.ts';

/** Bounds of one workgroup of threads on a GPU. */
export type DeviceLimits = {
  readonly workgroupBytes: number;
  readonly workgroupThreads: number;
  /** Threads that can add up their numbers without that memory. */
  readonly teamLanes: number;
};

/** The properties of a device that plans depend on, as plain JSON. */
export type DeviceInfo = {
  /** 'cpu', 'gpu:0', 'gpu:1' */
  readonly place: Place;
  readonly kind: 'cpu' | 'gpu';
  /** Tasks that run at the same time. */
  readonly parallelism: number;
  /**
   * True where `put`, `allocate`, `run`, `fetch` and `release` act in the order in which they are called: then a task that needs
   * another's outputs may be sent before that one has ended. It holds for matrices alone: a partition that a task gives to the
   * host is known when the task has ended.
   */
  readonly inOrder: boolean;
  /** True where one task passes over all rows, because the device shares them out itself; else passes are cut into slices. */
  readonly wholePasses: boolean;
  /** True where partitions must come to the device's own memory; such a device knows the task `upload`, which brings its inputs there. */
  readonly ownMemory: boolean;
  /** True where the task `update` has several variants, and the tasks `choose-update` and `tune-update` choose among them. */
  readonly choosesKernels?: boolean;
  /** Bytes of its own memory for factors and scratch; null where they are not known. */
  readonly capacityBytes: number | null;
  /** Bytes that one matrix, or one column of a partition, may have. */
  readonly bindingBytes?: number;
  /** A row of a matrix takes a multiple of so many elements. */
  readonly strideStep: number;
  /** Of GPUs: what kernels that share memory between threads may take. */
  readonly limits?: DeviceLimits;
  /** For people: "2 threads, WebAssembly SIMD with relaxed FMA". */
  readonly description: string;
};

/**
 * A place where tasks run: all CPU threads together, or one GPU.
 *
 * Contract: `run` may be called many times at once; the device queues what exceeds its parallelism. `release` of something
 * unknown does nothing.
 */
export interface Device {
  readonly info: DeviceInfo;
  /** Makes a host partition known under `ref`, without copying it; one of layout `factors` is copied to the device's own memory. */
  put(ref: PartitionRef, partition: Partition): void;
  /** Reserves a matrix or a vector in the device's memory, zeroed unless its shape says otherwise; throws CapacityError with need and have. */
  allocate(ref: PartitionRef, shape: MatrixShape): void;
  /** Throws CancelledError when `signal` fires; the task's outputs are then undefined. */
  run(task: Task, signal?: AbortSignal): Promise<TaskResult>;
  /** The host form; a matrix comes back as `{ values: Float32Array }` of rows x columns without padding. */
  fetch(ref: PartitionRef): Promise<Partition>;
  release(ref: PartitionRef): void;
  /** Gives memory that was released back to the system, as far as that is in its power; costs a few milliseconds. */
  trim(): Promise<void>;
  close(): Promise<void>;
}

/** The devices of a run; `LocalExecutor` has those of this process. */
export interface Executor {
  readonly devices: readonly Device[];
  /** The place `host`. */
  readonly memory: HostMemory;
  close(): Promise<void>;
}
