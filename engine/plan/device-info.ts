import type { Place } from './place.ts';

/** The end of the description of a GPU that is none. */
export const SOFTWARE_MARK = 'computes on the processor';

/**
 * Bytes of a matrix that a CPU's third-level cache may hold: its rows are fast to gather in any order. Those
 * of a larger one come from memory.
 */
export const CACHED_BYTES = 16 << 20;

/** Bounds of one workgroup of threads on a GPU. */
export type DeviceLimits = {
  readonly workgroupBytes: number;
  readonly workgroupThreads: number;
  /** Threads that can add up their numbers without that memory. */
  readonly teamLanes: number;
  /** True where it computes in float16. */
  readonly float16: boolean;
};

/** The properties of a device that plans depend on, as plain JSON. */
export type DeviceInfo = {
  /** 'cpu', 'gpu:0', 'gpu:1' */
  readonly place: Place;
  readonly kind: 'cpu' | 'gpu';
  /** Tasks that run at the same time. */
  readonly parallelism: number;
  /**
   * True where `put`, `allocate`, `run`, `fetch` and `release` act in the order in which they are called:
   * then a task that needs another's outputs may be sent before that one has ended. It holds for matrices
   * alone: a partition that a task gives to the host is known when the task has ended.
   */
  readonly inOrder: boolean;
  /**
   * True where one task passes over all rows, because the device shares them out itself; else passes are cut
   * into slices.
   */
  readonly wholePasses: boolean;
  /**
   * True where partitions must come to the device's own memory; such a device knows the task `upload`, which
   * brings its inputs there.
   */
  readonly ownMemory: boolean;
  /**
   * True where the task `update` has several variants, and the tasks `choose-update` and `tune-update` choose
   * among them.
   */
  readonly choosesKernels?: boolean;
  /** Bytes of its own memory for factors and scratch; null where they are not known. */
  readonly capacityBytes: number | null;
  /** Bytes that one matrix, or one column of a partition, may have. */
  readonly bindingBytes?: number;
  /** A row of a matrix takes a multiple of so many elements. */
  readonly strideStep: number;
  /** Of GPUs: the bounds of kernels that share memory between threads. */
  readonly limits?: DeviceLimits;
  /**
   * Devices of one number are nearer to each other than to others: those of one socket. Absent where that is
   * not known.
   */
  readonly group?: number;
  /** A description for messages: "2 threads, WebAssembly SIMD with relaxed FMA". */
  readonly description: string;
};
