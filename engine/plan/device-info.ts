import type { Place } from './place.ts';

/** The end of the description of a software GPU, which is not a GPU. */
export const SOFTWARE_MARK = 'computes on the processor';

/**
 * Bytes of a matrix that fits in a CPU's third-level cache, so that its rows can be gathered fast in any
 * order. Rows of a larger matrix are read from memory.
 */
export const CACHED_BYTES = 16 << 20;

export type DeviceLimits = {
  readonly workgroupBytes: number;
  readonly workgroupThreads: number;
  /**
   * Largest number of threads that can add up their numbers through registers (in a subgroup), without
   * workgroup memory.
   */
  readonly teamLanes: number;
  /** True if the device computes in float16. */
  readonly float16: boolean;
};

/** The properties of a device that plans depend on, as plain JSON. */
export type DeviceInfo = {
  /** "cpu", "gpu:0", "gpu:1" */
  readonly place: Place;
  readonly kind: 'cpu' | 'gpu';
  /** Tasks that run at the same time. */
  readonly parallelism: number;
  /**
   * True if `put`, `allocate`, `run`, `fetch` and `release` take effect in the order of the calls. A task
   * can then be sent before the task that makes its inputs has ended. This applies to matrices only: a
   * partition that a task returns to the host does not exist before the task has ended.
   */
  readonly inOrder: boolean;
  /**
   * True if one task processes all rows of a pass, because the device divides them among its threads itself.
   * Otherwise a pass is cut into slices of rows.
   */
  readonly wholePasses: boolean;
  /**
   * True if partitions must be copied to the device's own memory. Such a device has the task `upload`, which
   * copies its inputs there.
   */
  readonly ownMemory: boolean;
  /**
   * True if the task `update` has several variants, which the tasks `choose-update` and `tune-update` choose
   * from.
   */
  readonly choosesKernels?: boolean;
  /** Bytes of its own memory for factors and scratch; null if unknown. */
  readonly capacityBytes: number | null;
  /** Most bytes of one matrix, or of one column of a partition. */
  readonly bindingBytes?: number;
  /** A matrix row takes a multiple of this number of elements. */
  readonly strideStep: number;
  /** For GPUs: limits of kernels that share memory between threads. */
  readonly limits?: DeviceLimits;
  /** Devices with the same number are near each other (one processor socket). Absent if unknown. */
  readonly group?: number;
  /** A description for messages: "2 threads, WebAssembly SIMD with relaxed FMA". */
  readonly description: string;
};
