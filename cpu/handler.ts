import type { JsonObject } from '../engine/json.ts';
import type { Partition, SharedColumn } from '../engine/partition.ts';
import type { TaskOutcome } from '../engine/task.ts';
import type { None } from '../operators/tasks/task-types.ts';
import type { KernelTasks, OutcomeOf } from '../operators/tasks/tasks.ts';
import type { Kernels } from './kernels.ts';

/** A matrix in the shared WebAssembly memory: byte address of row 0, and its shape in elements. */
export interface MatrixView {
  readonly pointer: number;
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
}

/** The stride of factor rows is a multiple of this number of elements: 32 bytes. */
export const STRIDE_STEP = 8;

/**
 * Bytes of WebAssembly memory (scratch) that a running task has for itself, initially undefined. It suffices
 * for the packed panels (cpu/assembly/solve/panels.ts) of a row of 62,000 ratings at rank 128. Tasks
 * should touch no more of it than they need.
 */
export const SCRATCH_BYTES = 16 << 20;

/** The tasks of a CPU: the tasks of KernelTasks with a handler in cpu/tasks, and `rest`. */
export interface CpuTasks extends KernelTasks {
  /** Does nothing, but a thread collects garbage before it, as before any task. */
  rest: { inputs: None; outputs: None; params: None; values: None };
}

/** The resources of a handler for one task, inside a worker thread. */
export interface TaskScope<Params extends JsonObject = JsonObject> {
  readonly params: Params;
  /** A host input (throws when the task does not name it). */
  partition(name: string): Partition;
  /**
   * A piece of the only column of an input in host memory. If the input is in a file, only this piece is
   * read.
   */
  piece(name: string, piece: number): SharedColumn;
  hasInput(name: string): boolean;
  hasMatrix(name: string): boolean;
  /** A matrix in WebAssembly memory among the inputs or outputs. Inputs must not be written. */
  matrix(name: string): MatrixView;
  /** Address of SCRATCH_BYTES bytes, 64-byte aligned. */
  readonly scratch: number;
  readonly memory: WebAssembly.Memory;
  readonly kernels: Kernels;
  /**
   * True once the run is cancelled; the handler then returns early, and its outcome is discarded. Check
   * between chunks, every few ms.
   */
  cancelled(): boolean;
}

/** The arrays of a rating-block. */
export interface BlockArrays {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

export function blockOf(scope: Pick<TaskScope, 'partition'>, name = 'block'): BlockArrays {
  return scope.partition(name).columns as unknown as BlockArrays;
}

/** The values of an input or output; undefined if the task has none of this name. */
export function valuesOf<Values = Float32Array>(scope: TaskScope, name: string): Values | undefined {
  return scope.hasInput(name) ? (scope.partition(name).columns.values as Values) : undefined;
}

/** True at the first row, and every 8,192 rows, of a task whose run is cancelled. */
export function stopsAt(scope: TaskScope<{ readonly from: number }>, row: number): boolean {
  return (row - scope.params.from) % 8_192 === 0 && scope.cancelled();
}

export type ScopeOf<K extends keyof CpuTasks> = TaskScope<CpuTasks[K]['params']>;

export type TaskHandler<K extends keyof CpuTasks> = (scope: ScopeOf<K>) => OutcomeOf<CpuTasks[K]>;

/**
 * Handlers, by task name, of tasks that the device itself does not have, such as reading and writing files. A
 * module exports them as `handlers`; the device gets its URL, and a thread imports it at the first task that
 * needs it.
 */
export type GivenHandlers = Readonly<
  Record<string, (scope: TaskScope) => TaskOutcome | Promise<TaskOutcome>>
>;

export interface GivenTasks {
  readonly handlers: GivenHandlers;
  /** Loads the modules of a task before its first request. */
  load?(kernel: string): Promise<unknown>;
}
