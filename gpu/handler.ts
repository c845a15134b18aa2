import type { JsonObject } from '../engine/json.ts';
import type { Partition } from '../engine/partition.ts';
import type { KernelTasks, OutcomeOf } from '../operators/tasks/tasks.ts';
import type { Gpu } from './webgpu/gpu.ts';
import type { CheckKernelsTask, KernelTimesTask, TimeVariantsTask } from './own-tasks.ts';
import type { DeviceBlock, DeviceList, DeviceMatrix, WireRows } from './device/resources.ts';

/**
 * All tasks of a GPU by name: the tasks that it has in common with the CPU (those with a handler in a file
 * *.task.ts), and three of its own.
 */
export interface GpuTasks extends KernelTasks {
  'kernel-times': KernelTimesTask;
  'check-kernels': CheckKernelsTask;
  'time-variants': TimeVariantsTask;
}

/**
 * Everything that the handler of one task may use, in the thread that owns the GPU. Data are named as in the
 * task's contract (operators/tasks/). A handler must destroy the buffers that it creates.
 */
export interface GpuTaskScope<Params extends JsonObject = JsonObject> {
  readonly gpu: Gpu;
  readonly params: Params;
  /** True if the task has a matrix of this name. */
  hasMatrix(name: string): boolean;
  /**
   * A device matrix among the inputs or outputs (throws when the task does not name it). Inputs must not be
   * written.
   */
  matrix(name: string): DeviceMatrix;
  /**
   * A matrix of which perhaps only the half mirror (a float16 copy) is stored; undefined if the partition of
   * this name is not a matrix.
   */
  matrixOrHalf(name: string): DeviceMatrix | undefined;
  /** Rows received from another GPU, laid out as in a matrix; undefined if the input has another layout. */
  wire(name: string): WireRows | undefined;
  /**
   * A matrix with its half mirror, a float16 copy with one more row of zeros. An input's mirror has the
   * matrix's values. An output's mirror must be written by the handler, except for the last row, which is 0.
   */
  matrixWithHalf(name: string): Promise<DeviceMatrix>;
  /** A rating block among the inputs. */
  block(name: string): DeviceBlock;
  /** A rating-list among the inputs. */
  list(name: string): DeviceList;
  /** f32 buffer of a partition's column `values`, such as a bias or column bounds. */
  vector(name: string): GPUBuffer;
  /** An input in host memory, for example the (row, column) pairs of `predict`. */
  partition(name: string): Partition;
  /** True if the task has an input of this name. */
  has(name: string): boolean;
  /**
   * True once the run is cancelled; the handler then returns early, and its outcome is discarded. Check
   * between submissions.
   */
  cancelled(): boolean;
  /**
   * A handler calls this when it has submitted all its GPU work and only waits for results. The next task may
   * then start, so from here on the handler must not use buffers that tasks share (`Gpu.scratch`), matrices
   * or error scopes.
   */
  submitted(): void;
}

export type GpuScopeOf<K extends keyof GpuTasks> = GpuTaskScope<GpuTasks[K]['params']>;

export type GpuTaskHandler<K extends keyof GpuTasks> = (
  scope: GpuScopeOf<K>,
) => Promise<OutcomeOf<GpuTasks[K]>>;
