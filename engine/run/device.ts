import type { FileMemory, MatrixShape, Partition, PartitionRef } from '../partition.ts';
import type { MemoryMeter } from './memory-meter.ts';
import type { DeviceInfo } from '../plan/device-info.ts';
import type { Task, TaskResult } from '../task.ts';
import type { WrittenFile } from '../spill/spilled-partition.ts';
import type { StagedCopies } from './staged-copies.ts';
import type { Wire } from './step.ts';

/**
 * A place where tasks run: all CPU threads together, or one GPU.
 *
 * Contract: `run` may be called many times at once; the device queues what exceeds its parallelism. `release`
 * of something unknown does nothing.
 */
export interface Device {
  readonly info: DeviceInfo;
  /**
   * The bytes of its own memory, scratch of tasks among them where it is allocated for them; absent where
   * they are not counted.
   */
  readonly memory?: MemoryMeter;
  /**
   * Makes a host partition known under `ref`, without copying it; one of layout `factors` is copied to the
   * device's own memory.
   */
  put(ref: PartitionRef, partition: Partition): void;
  /**
   * Reserves a matrix or a vector in the device's memory, zeroed unless its shape says otherwise; throws
   * CapacityError with need and have.
   */
  allocate(ref: PartitionRef, shape: MatrixShape): void;
  /** Throws CancelledError when `signal` fires; the task's outputs are then undefined. */
  run(task: Task, signal?: AbortSignal): Promise<TaskResult>;
  /**
   * The host form; a matrix comes back as `{ values: Float32Array }` of rows x columns without padding. With
   * `wire` a device with memory of its own gives a matrix that tasks have written in that form instead:
   * layout `wire-rows`, in `values`, Float32Array or Uint16Array of rows x stride, or in files in memory, for
   * `put` on another such device.
   */
  fetch(ref: PartitionRef, wire?: WireRequest): Promise<Partition>;
  release(ref: PartitionRef): void;
  /**
   * Gives up the host memory of partitions that it has in memory of its own: tasks go on reading them there.
   * Resolves once that is done: giving gigabytes back to the system takes seconds. Devices that compute in
   * host memory have no such method.
   */
  leaveHost?(refs: readonly PartitionRef[]): Promise<void>;
  /** Gives released memory back to the system, as far as the device can; costs a few milliseconds. */
  trim(): Promise<void>;
  /**
   * Leaves released memory to the next `trim`: collecting it stops threads for milliseconds, which others may
   * wait for.
   */
  leaveGarbage?(): void;
  /** From now on threads collect released memory when at most `collectBytes` of it wait. */
  saveMemory?(collectBytes: number): void;
  close(): Promise<void>;
}

export interface WireRequest {
  readonly form: Wire;
  /** Memory for the rows, of at least so many bytes. */
  take(bytes: number): WireMemory;
}

/**
 * Memory for rows on their way between devices: files, which threads of the system copy, or an array, which
 * the threads of devices copy themselves.
 */
export type WireMemory = SharedArrayBuffer | FileMemory;

/** Makes files in memory. */
export interface FileMemories {
  /** Undefined where the system has none, or no more room in them. */
  make(bytes: number): FileMemory | undefined;
  /** Closes all that it made. */
  close(): void;
}

/** The place `host`: partitions in the memory of this process. It runs no tasks. */
export interface HostStore extends Device {
  get(ref: PartitionRef): Partition;
  /**
   * Memory of at least so many bytes for a partition that is put here; it serves again once that one is
   * released, since fresh memory costs a page fault every 4 KiB.
   */
  take(bytes: number): WireMemory;
}

/**
 * The place `spill`: partitions in files. `fetch` reads one into memory that is used for the next once the
 * copy of it, which `runSteps` notes, is freed.
 */
export interface SpillStore extends Device {
  /**
   * Has `writer` write partitions to one new file, and gives their references for a device that reads files.
   * Throws UsageError for a folder that cannot be written to.
   */
  write(
    refs: readonly PartitionRef[],
    writer: (file: string) => Promise<WrittenFile>,
  ): Promise<readonly Partition[]>;
  /** Throws CapacityError with both figures where the disk is known to have less room. */
  requireRoom(bytes: number): Promise<void>;
  readonly copies: StagedCopies;
}

/** The devices of a run; `LocalExecutor` has those of this process. */
export interface Executor {
  /** Those that are open: a GPU may come later, and none goes. */
  readonly devices: readonly Device[];
  /** The place `host`. */
  readonly memory: HostStore;
  /** The place `spill`; absent where everything stays in memory. */
  readonly spilled?: SpillStore;
  /** Makes files in memory for one store; absent where rows between devices go through arrays. */
  readonly files?: (() => FileMemories) | undefined;
  close(): Promise<void>;
}
