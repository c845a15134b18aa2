import type { PartitionRef } from '../engine/partition.ts';
import type { VariantTime } from './update/choice/time-variants.ts';
import type { None } from '../operators/tasks/task-types.ts';
import type { UpdateProblem } from '../operators/tasks/tasks.ts';

/**
 * Runs one of the checks that compare kernels with their twins on this adapter, by its number; without a
 * number only lists them.
 *
 * Values: without a number `checks`, a list of {name, variant}, and `kernels`, the names of all kernels with
 * checks, also those that this adapter does not admit; with one {error, limit}, see KernelCheck. Spans:
 * compiling, allocations, transfers and passes.
 *
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
 * Tells the time that kernels took on the GPU since this was asked last, and takes it from now on or no
 * longer (`run`), for benches.
 *
 * Values: milliseconds by kernel name; none where the adapter has no timestamps.
 *
 */
export interface KernelTimesTask {
  inputs: None;
  outputs: None;
  params: { readonly run: boolean };
  values: { readonly [kernel: string]: number };
}

/**
 * Times variants of `update` on rows of a block, in the order in which they are named; nothing is written.
 *
 * Values: `times`, see VariantTime, of as many variants as were begun within `seconds`; `ratings` and `rows`
 * that were solved; `clock`, "gpu" or "host".
 *
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
    /** Ratings of the sample, about. */
    readonly sample: number;
    readonly seconds: number;
    /** Milliseconds of the fastest so far, if any. */
    readonly best?: number;
  };
  values: {
    readonly times: readonly VariantTime[];
    readonly rows: number;
    readonly ratings: number;
    readonly clock: 'gpu' | 'host';
  };
}
