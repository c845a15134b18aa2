import type { JsonObject } from '../engine/json.ts';
import type { Partition, PartitionRef } from '../engine/partition.ts';
import type { None } from '../operators/tasks/task-types.ts';
import type { KernelTasks, OutcomeOf, UpdateProblem } from '../operators/tasks/tasks.ts';
import type { DeviceBlock, DeviceList, DeviceMatrix, WireRows } from './device/resources.ts';
import type { Gpu } from './webgpu/gpu.ts';

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

/**
 * Runs one check on this adapter: a kernel compared with its CPU version. `check` is the check's number;
 * without it, the task only lists all checks.
 *
 * Values with a number: {error, limit}, see KernelCheck. Without: `checks`, a list of {name, variant}, and
 * `kernels`, the names of all kernels with checks, including kernels that this adapter does not support.
 *
 * Spans (for a trace): compiling, allocations, transfers and passes.
 */
export interface CheckKernelsTask {
  inputs: None;
  outputs: None;
  params: { readonly check?: number };
  values: {
    readonly checks?: readonly { readonly name: string; readonly variant: string }[];
    readonly kernels?: readonly string[];
    readonly error?: number;
    readonly limit?: number;
  };
}

/**
 * Returns the time that kernels took on the GPU since the previous task of this name, and switches this
 * measurement on or off (`run`). Benches use it.
 *
 * Values: milliseconds by kernel name; empty if the adapter has no timestamps.
 */
interface KernelTimesTask {
  inputs: None;
  outputs: None;
  params: { readonly run: boolean };
  values: { readonly [kernel: string]: number };
}

/**
 * The result for one variant: milliseconds of a half-iteration, or `milliseconds` null and the `problem` that
 * prevented the measurement.
 */
export type VariantTime = {
  readonly variant: string;
  readonly milliseconds: number | null;
  /** Number of timed runs: seven, or fewer if the variant is far slower than the fastest one so far. */
  readonly runs: number;
  readonly problem?: string;
};

/**
 * Measures variants of the kernel `update` on a sample of a block's rows, in the given order, so that the
 * fastest can be chosen. The solved rows are discarded: the task has no outputs.
 *
 * Values: `times` of the variants that were started within `seconds`, see VariantTime; `ratings` and `rows`,
 * the numbers that were solved; `clock`, "gpu" or "host", the clock that measured.
 */
export interface TimeVariantsTask {
  inputs: { block: PartitionRef };
  outputs: None;
  params: {
    readonly rank: number;
    readonly solver: UpdateProblem['solver'];
    readonly cgSteps: number;
    readonly biases: boolean;
    readonly implicit: boolean;
    readonly prior: boolean;
    /** Rows of θ. */
    readonly columns: number;
    readonly ratingScale: number;
    readonly variants: readonly string[];
    /** Approximate ratings of the sample. */
    readonly sample: number;
    readonly seconds: number;
    /** Milliseconds of the fastest variant so far, if any. */
    readonly best?: number;
  };
  values: {
    readonly times: readonly VariantTime[];
    readonly rows: number;
    readonly ratings: number;
    readonly clock: 'gpu' | 'host';
  };
}
