import type { JsonObject } from '../engine/json.ts';
import type { Partition } from '../engine/partition.ts';
import type { KernelTasks, OutcomeOf } from '../operators/tasks/tasks.ts';
import type { Gpu } from './webgpu/gpu.ts';
import type { CheckKernelsTask, KernelTimesTask, TimeVariantsTask } from './own-tasks.ts';
import type { DeviceBlock, DeviceList, DeviceMatrix, WireRows } from './device/resources.ts';

/** The tasks of a GPU: KernelTasks that have a handler in a file *.task.ts, and the GPU's own tasks. */
export interface GpuTasks extends KernelTasks {
  'kernel-times': KernelTimesTask;
  'check-kernels': CheckKernelsTask;
  'time-variants': TimeVariantsTask;
}

/**
 * The resources of a handler for one task, in the thread that owns the GPU. A handler destroys what it
 * allocates.
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
  /** A device matrix that may have only its half mirror; undefined where the name is not a matrix. */
  matrixOrHalf(name: string): DeviceMatrix | undefined;
  /**
   * Rows received from another GPU, laid out as in a matrix; undefined where the input is no such partition.
   */
  wire(name: string): WireRows | undefined;
  /**
   * The matrix with its half mirror. For an input the mirror is filled; for an output it is to be written,
   * and its last row is 0.
   */
  matrixWithHalf(name: string): Promise<DeviceMatrix>;
  /** A rating block among the inputs. */
  block(name: string): DeviceBlock;
  /** A rating-list among the inputs. */
  list(name: string): DeviceList;
  /** f32 buffer of a partition's column `values`, such as a bias or column bounds. */
  vector(name: string): GPUBuffer;
  /** The host form of an input, such as pairs. */
  partition(name: string): Partition;
  /** True if the task has an input of this name. */
  has(name: string): boolean;
  /**
   * True once the run is cancelled; the handler then returns early, and its outcome is discarded. Check
   * between submissions.
   */
  cancelled(): boolean;
  /**
   * A handler calls this once it has submitted all its GPU work and only waits for results. The next task
   * may then start. After the call the handler must not use scratch buffers, matrices or error scopes.
   */
  submitted(): void;
}

export type GpuScopeOf<K extends keyof GpuTasks> = GpuTaskScope<GpuTasks[K]['params']>;

export type GpuTaskHandler<K extends keyof GpuTasks> = (
  scope: GpuScopeOf<K>,
) => Promise<OutcomeOf<GpuTasks[K]>>;
