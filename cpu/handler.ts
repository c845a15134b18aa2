import type { JsonObject } from '../engine/json.ts';
import type { Partition } from '../engine/partition.ts';
import type { TaskOutcome } from '../engine/task.ts';
import type { Kernels } from './kernels.ts';

/** A matrix in the shared WebAssembly memory: byte address of row 0, and its shape in elements. */
export interface MatrixView {
  readonly pointer: number;
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
}

/** Bytes of WebAssembly memory that a running task has for itself; its contents on entry are undefined. */
export const SCRATCH_BYTES = 8 << 20;

/** What a handler gets to do one task with, inside a worker thread. */
export interface TaskScope {
  readonly params: JsonObject;
  /** A host input (throws when the task does not name it). */
  partition(name: string): Partition;
  hasInput(name: string): boolean;
  /** A device matrix among the inputs or outputs. Inputs must not be written. */
  matrix(name: string): MatrixView;
  /** Address of SCRATCH_BYTES bytes, 64-byte aligned. */
  readonly scratch: number;
  readonly memory: WebAssembly.Memory;
  readonly kernels: Kernels;
  /** True once the run is cancelled: return early (the outcome is thrown away). Look between chunks, every few ms. */
  cancelled(): boolean;
}

export type TaskHandler = (scope: TaskScope) => TaskOutcome;
