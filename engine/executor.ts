import type { MatrixShape, Partition, PartitionRef } from './partition.ts';
import type { Task, TaskResult } from './task.ts';

/**
 * A place where tasks run: all CPU threads together, or one GPU.
 *
 * Contract: `run` may be called many times at once; the device queues what exceeds `parallelism`. A device fetches an
 * input it lacks through its executor. `release` of something unknown does nothing.
 */
export interface Device {
  readonly name: string;
  readonly kind: 'cpu' | 'gpu';
  /** Tasks that run at the same time. */
  readonly parallelism: number;
  /** Bytes of its own memory for factors and scratch. */
  readonly capacityBytes: number;
  /** For people: "2 threads, WebAssembly SIMD with relaxed FMA". */
  readonly description: string;
  /** Makes a host partition known under `ref`, without copying it; one of layout `factors` is copied to the device's own memory. */
  put(ref: PartitionRef, partition: Partition): void;
  /** Reserves a zeroed matrix in the device's memory; throws CapacityError with need and have. */
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

/** Runs physical plans' tasks on its devices; `LocalExecutor` does it with threads of this process. */
export interface Executor {
  readonly devices: readonly Device[];
  close(): Promise<void>;
}
