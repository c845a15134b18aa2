import type { JsonObject } from '../engine/json.ts';
import type { Partition } from '../engine/partition.ts';
import type { KernelTasks, OutcomeOf } from '../operators/tasks/tasks.ts';
import type { Gpu } from './webgpu/gpu.ts';
import type { CheckKernelsTask, KernelTimesTask, TimeVariantsTask } from './own-tasks.ts';
import type { DeviceBlock, DeviceList, DeviceMatrix, WireRows } from './device/resources.ts';

/** The tasks of a GPU: of KernelTasks those with a handler in a file *.task.ts, and its own. */
export interface GpuTasks extends KernelTasks {
  'kernel-times': KernelTimesTask;
  'check-kernels': CheckKernelsTask;
  'time-variants': TimeVariantsTask;
}

/**
 * The means with which a handler does one task, in the thread that owns the GPU. What it allocates it
 * destroys.
 */
export interface GpuTaskScope<Params extends JsonObject = JsonObject> {
  readonly gpu: Gpu;
  readonly params: Params;
  /** True where the task names a matrix so. */
  hasMatrix(name: string): boolean;
  /**
   * A device matrix among the inputs or outputs (throws when the task does not name it). Inputs must not be
   * written.
   */
  matrix(name: string): DeviceMatrix;
  /** A device matrix that may have its half mirror alone; undefined where the name is of no matrix. */
  matrixOrHalf(name: string): DeviceMatrix | undefined;
  /**
   * Rows that came from another GPU, as they lie in a matrix there; undefined where the input is no such
   * partition.
   */
  wire(name: string): WireRows | undefined;
  /**
   * The same with its half mirror: of an input the mirror of what it holds, of an output one to be written,
   * its last row 0.
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
  /** True where the task names this input. */
  has(name: string): boolean;
  /** True once the run is cancelled: return early (the outcome is thrown away). Look between submissions. */
  cancelled(): boolean;
  /**
   * Called where all that the task does on the GPU is submitted and it only waits for what comes back: the
   * next task may begin. From then on the task touches nothing that another could (scratch buffers, matrices,
   * the error scopes).
   *
   */
  submitted(): void;
}

export type GpuScopeOf<K extends keyof GpuTasks> = GpuTaskScope<GpuTasks[K]['params']>;

export type GpuTaskHandler<K extends keyof GpuTasks> = (
  scope: GpuScopeOf<K>,
) => Promise<OutcomeOf<GpuTasks[K]>>;
