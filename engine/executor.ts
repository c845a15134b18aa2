import type { JsonObject } from './json.ts';
import type { MatrixShape, Partition, PartitionRef } from './partition.ts';
import type { Task, TaskResult } from './task.ts';

/** The variant of a kernel that a device takes for a problem, and why. Part of the plan: a run that is repeated takes it again. */
export type KernelChoice = {
  readonly variant: string;
  readonly precision: 'f32' | 'f16';
  /** Power of two by which ratings are multiplied before they meet float16. */
  readonly ratingScale: number;
  readonly reason: string;
  /** What the variant takes of the device's memory beside its inputs and outputs: work lists, partial sums, copies of half the width. */
  readonly deviceBytes: number;
};

/** Variants of a kernel that a device timed on rows of a block, and the one it will choose. */
export type KernelTuning = {
  readonly variant: string;
  /** "measured fastest of 7: 12.1 ms against 14.0 ms of tiled8-f32, sample of 2,000,000 ratings" */
  readonly reason: string;
  /** In the order in which they were timed; `milliseconds` is null, with the problem, for one that failed. */
  readonly times: readonly { readonly variant: string; readonly milliseconds: number | null; readonly runs: number; readonly problem?: string }[];
  /** Of the sample. */
  readonly rows: number;
  readonly ratings: number;
  /** Whose clock: the GPU's where it has one. */
  readonly clock: 'gpu' | 'host';
  /** Why it will not be remembered beyond this process, where that is so. */
  readonly note?: string;
};

/** Of one workgroup of threads on a GPU. */
export type DeviceLimits = {
  readonly workgroupBytes: number;
  readonly workgroupThreads: number;
  /** Threads that can add up their numbers without that memory. */
  readonly teamLanes: number;
};

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
  /**
   * Whether `put`, `allocate`, `run`, `fetch` and `release` act in the order in which they are called: then a task that needs
   * another's outputs may be sent before that one has ended, and what no later task needs released. Only
   * matrices: what a task gives to the host is known when it has ended.
   */
  readonly inOrder: boolean;
  /** Bytes of its own memory for factors and scratch; Infinity where nobody tells how many there are. */
  readonly capacityBytes: number;
  /** Bytes that one matrix, or one column of a partition, may have. */
  readonly bindingBytes?: number;
  /** A row of a matrix takes a multiple of so many elements. */
  readonly strideStep: number;
  /** What kernels that share memory between threads may take; of GPUs. */
  readonly limits?: DeviceLimits;
  /** For people: "2 threads, WebAssembly SIMD with relaxed FMA". */
  readonly description: string;
  /** Makes a host partition known under `ref`, without copying it; one of layout `factors` is copied to the device's own memory. */
  put(ref: PartitionRef, partition: Partition): void;
  /** Reserves a matrix in the device's memory, zeroed unless its shape says otherwise; throws CapacityError with need and have. */
  allocate(ref: PartitionRef, shape: MatrixShape): void;
  /** Throws CancelledError when `signal` fires; the task's outputs are then undefined. */
  run(task: Task, signal?: AbortSignal): Promise<TaskResult>;
  /** The host form; a matrix comes back as `{ values: Float32Array }` of rows x columns without padding. */
  fetch(ref: PartitionRef): Promise<Partition>;
  release(ref: PartitionRef): void;
  /** Chooses among the variants of the task `update`; only devices that have several. Throws UsageError for one that cannot run. */
  choose?(problem: JsonObject): Promise<KernelChoice>;
  /**
   * Times the variants on a block that was put, so that `choose` takes the fastest for problems like this one; only devices
   * that choose. `where-it-pays`: undefined where it is not worth the time, or was done before; `thorough`: all there is to
   * measure, whatever it takes.
   */
  tune?(problem: JsonObject, block: PartitionRef, how: 'where-it-pays' | 'thorough', signal?: AbortSignal): Promise<KernelTuning | undefined>;
  /** Gives memory that was released back to the system, as far as that is in its power; costs a few milliseconds. */
  trim(): Promise<void>;
  close(): Promise<void>;
}

/** Runs physical plans' tasks on its devices; `LocalExecutor` does it with threads of this process. */
export interface Executor {
  readonly devices: readonly Device[];
  close(): Promise<void>;
}
