import type { JsonObject } from '../engine/json.ts';
import type { Partition, SharedColumn } from '../engine/partition.ts';
import type { TaskOutcome } from '../engine/task.ts';
import type { KernelTasks, OutcomeOf } from '../operators/tasks/tasks.ts';
import type { Kernels } from './kernels.ts';
import type { None } from '../operators/tasks/task-types.ts';

/** A matrix in the shared WebAssembly memory: byte address of row 0, and its shape in elements. */
export interface MatrixView {
  readonly pointer: number;
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
}

/** The stride of a row of factors is a multiple of so many elements: 32 bytes. */
export const STRIDE_STEP = 8;

/**
 * Bytes of WebAssembly memory that a running task has for itself; its contents on entry are undefined. The
 * packed panels of a row of 62,000 ratings fit at rank 128. Tasks touch no more of it than they need.
 *
 */
export const SCRATCH_BYTES = 16 << 20;

/** The tasks of a CPU: of KernelTasks those with a handler in cpu/tasks. */
export interface CpuTasks extends KernelTasks {
  /** Does nothing but what a thread does before any task, such as collecting garbage. */
  rest: { inputs: None; outputs: None; params: None; values: None };
}

/** The means with which a handler does one task, inside a worker thread. */
export interface TaskScope<Params extends JsonObject = JsonObject> {
  readonly params: Params;
  /** A host input (throws when the task does not name it). */
  partition(name: string): Partition;
  /** A piece of the only column of a host input; of one in a file, no more is read. */
  piece(name: string, piece: number): SharedColumn;
  hasInput(name: string): boolean;
  /** True where the task names a matrix so. */
  hasMatrix(name: string): boolean;
  /** A device matrix among the inputs or outputs. Inputs must not be written. */
  matrix(name: string): MatrixView;
  /** Address of SCRATCH_BYTES bytes, 64-byte aligned. */
  readonly scratch: number;
  readonly memory: WebAssembly.Memory;
  readonly kernels: Kernels;
  /**
   * True once the run is cancelled: return early (the outcome is thrown away). Look between chunks, every few
   * ms.
   */
  cancelled(): boolean;
}

export type ScopeOf<K extends keyof CpuTasks> = TaskScope<CpuTasks[K]['params']>;

export type TaskHandler<K extends keyof CpuTasks> = (scope: ScopeOf<K>) => OutcomeOf<CpuTasks[K]>;

/**
 * Handlers, by task name, of tasks that the device does not know itself, such as those that read and write
 * files. A module exports them as `handlers`; its URL is given to the device, and a thread imports it at the
 * first task that needs it.
 *
 */
export type GivenHandlers = Readonly<
  Record<string, (scope: TaskScope) => TaskOutcome | Promise<TaskOutcome>>
>;

/** A module with the handlers of further tasks. */
export interface GivenTasks {
  readonly handlers: GivenHandlers;
  /** Loads the modules of a task before it is asked for. */
  load?(kernel: string): Promise<unknown>;
}
