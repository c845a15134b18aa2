import type { PartitionRef } from '../engine/partition.ts';
import type { VariantTime } from './update/choice/time-variants.ts';
import type { None } from '../operators/tasks/task-types.ts';
import type { UpdateProblem } from '../operators/tasks/tasks.ts';

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
export interface KernelTimesTask {
  inputs: None;
  outputs: None;
  params: { readonly run: boolean };
  values: { readonly [kernel: string]: number };
}

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
