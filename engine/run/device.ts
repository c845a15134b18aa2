import type { FileMemory, MatrixShape, Partition, PartitionRef } from '../partition.ts';
import type { MemoryMeter } from './memory-meter.ts';
import type { DeviceInfo } from '../plan/device-info.ts';
import type { Task, TaskResult } from '../task.ts';
import type { WrittenFile } from '../spill/spilled-partition.ts';
import type { StagedCopies } from './staged-copies.ts';
import type { Wire } from './step.ts';

/**
 * Something on which tasks run: all CPU threads together, or one GPU.
 *
 * Contract: `run` may be called many times at once; the device queues what exceeds its parallelism.
 * `release` of an unknown partition does nothing.
 */
export interface Device {
  readonly info: DeviceInfo;
  /**
   * The bytes of the device's own memory. Scratch memory of tasks is included if it is allocated for the
   * tasks. Absent if bytes are not counted.
   */
  readonly memory?: MemoryMeter;
  /**
   * Registers a host partition under `ref` without copying it; a partition of layout `factors` is copied to
   * the device's own memory. A CPU also takes factors as bits of float16 (Uint16Array).
   */
  put(ref: PartitionRef, partition: Partition): void;
  /**
   * Allocates a matrix or a vector in the device's memory, zeroed unless its shape says otherwise; throws
   * CapacityError with the needed and the available bytes.
   */
  allocate(ref: PartitionRef, shape: MatrixShape): void;
  /** Throws CancelledError when `signal` fires; the task's outputs are then undefined. */
  run(task: Task, signal?: AbortSignal): Promise<TaskResult>;
  /**
   * Returns a partition in host memory. A matrix is `{ values: Float32Array }` of rows x columns without
   * padding.
   *
   * `wire` is for matrices that a task has written, on devices with their own memory: the rows are returned
   * with padding (layout `wire-rows`), as `put` of another such device accepts them. They are in `values`
   * (Float32Array or Uint16Array of rows x stride) or in memory files.
   *
   * `into` is memory of rows x columns numbers for a matrix, which may be used instead of new memory.
   */
  fetch(ref: PartitionRef, wire?: WireRequest, into?: Float32Array): Promise<Partition>;
  release(ref: PartitionRef): void;
  /**
   * Frees the host memory of partitions that are also in the device's own memory, where tasks continue to
   * read them. Resolves once that is done: returning gigabytes to the system takes seconds. Devices that
   * compute in host memory do not have this method.
   */
  leaveHost?(refs: readonly PartitionRef[]): Promise<void>;
  /** Returns released memory to the system as far as possible. Takes a few milliseconds. */
  trim(): Promise<void>;
  /**
   * From now on, until the next `trim`, released memory is not collected. Collecting stops threads for
   * milliseconds, and other threads may have to wait for them.
   */
  leaveGarbage?(): void;
  /** From now on threads collect released memory once `collectBytes` bytes of it have accumulated. */
  saveMemory?(collectBytes: number): void;
  close(): Promise<void>;
}

export interface WireRequest {
  readonly form: Wire;
  /** Memory of at least `bytes` bytes for the rows. */
  take(bytes: number): WireMemory;
  /**
   * If present, `fetch` may return while rows are still written to memory files (see InFiles.arrived). It
   * then first calls `arriving` with a promise for the end of the writes, which rejects if they fail.
   */
  arriving?(ended: Promise<void>): void;
}

/**
 * Memory for rows that are sent between devices. Either memory files, which system threads copy, or an
 * array, which the devices' threads copy.
 */
export type WireMemory = SharedArrayBuffer | FileMemory;

export interface FileMemories {
  /** Returns undefined if the system has no memory files, or no more memory for them. */
  make(bytes: number): FileMemory | undefined;
  /** Closes all files that it made. */
  close(): void;
}

/** The place `host`: partitions in the memory of this process. It runs no tasks. */
export interface HostStore extends Device {
  get(ref: PartitionRef): Partition;
  /**
   * Memory of at least `bytes` bytes for a partition that is put here. It is reused once the partition is
   * released, since new memory costs a page fault every 4 KiB.
   */
  take(bytes: number): WireMemory;
}

/**
 * The place `spill`: partitions in files. A matrix of zeros that is allocated there takes no file. `fetch`
 * reads a partition into memory. `runSteps` registers this copy in `copies`, so that its memory is reused
 * once the copy is freed.
 */
export interface SpillStore extends Device {
  /**
   * Lets `writer` write partitions to one new file; returns references for a device that reads files. Throws
   * UsageError for a folder that is not writable.
   */
  write(
    refs: readonly PartitionRef[],
    writer: (file: string) => Promise<WrittenFile>,
  ): Promise<readonly Partition[]>;
  /**
   * Throws CapacityError with the needed and the free bytes if the disk is known to have too little space.
   */
  requireRoom(bytes: number): Promise<void>;
  /** Keeps a partition with one column in its file as a result of the run. */
  keep(ref: PartitionRef): Partition;
  readonly copies: StagedCopies;
}

/** The devices of a run; `LocalExecutor` has the devices of this process. */
export interface Executor {
  /** The open devices: a GPU may be added later, and none is removed. */
  readonly devices: readonly Device[];
  /** The place `host`. */
  readonly memory: HostStore;
  /** The place `spill`; absent if all data stay in memory. */
  readonly spilled?: SpillStore;
  /** Creates memory files for one store. Absent if rows are sent between devices in arrays. */
  readonly files?: (() => FileMemories) | undefined;
  close(): Promise<void>;
}
