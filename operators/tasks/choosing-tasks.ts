/**
 * The tasks that choose a device's kernels, time them and start to compile them. Together with tasks.ts they
 * are the contract between the operators and the devices.
 */
import type { PartitionRef } from '../../engine/partition.ts';
import type { How } from '../../engine/run/step.ts';
import type { ExactSolver, None } from './task-types.ts';

/** The properties of a half-iteration that the choice of a variant of `update` depends on. */
export type UpdateProblem = {
  readonly rank: number;
  readonly solver: 'cg' | ExactSolver;
  readonly cgSteps: number;
  readonly precision: 'auto' | 'f32' | 'f16' | 'int8';
  readonly biases: boolean;
  /** True for `update-implicit`. */
  readonly implicit?: boolean;
  /** Rows that are solved, and rows of θ. */
  readonly rows: number;
  readonly columns: number;
  readonly ratings: number;
  /** Of the run, at most. */
  readonly iterations: number;
  /** Ratings of the longest row. */
  readonly longest: number;
  /** Largest |rating|; of implicit data, of √w and t / √w. */
  readonly largestRating: number;
  /** The name of the variant that the caller asks for. */
  readonly kernel?: string;
};

/**
 * The variant of a kernel that a device takes for a problem, and the reason. Part of the plan: a run that is
 * repeated takes it again.
 */
export type KernelChoice = {
  readonly variant: string;
  readonly precision: 'f32' | 'f16' | 'int8';
  /** Power of two that multiplies ratings before they are rounded to float16. */
  readonly ratingScale: number;
  readonly reason: string;
  /**
   * Device memory of the variant in addition to its inputs and outputs: work lists and copies of half the
   * width.
   */
  readonly deviceBytes: number;
  /**
   * Buffers by name that all kernels of a device share, each as large as the largest of them needs: partial
   * sums, ratings without biases.
   */
  readonly scratchBytes?: Readonly<Record<string, number>>;
  /** True for kernels that give `objective` where it is asked for. */
  readonly tellsLoss?: boolean;
};

/** Variants of a kernel that a device timed on rows of a block, and the one it will choose. */
export type KernelTuning = {
  readonly variant: string;
  /** "measured fastest of 7: 12.1 ms against 14.0 ms of tiled8-f32, sample of 2,000,000 ratings" */
  readonly reason: string;
  /** In the order of timing; `milliseconds` is null, with the problem, for a variant that failed. */
  readonly times: readonly {
    readonly variant: string;
    readonly milliseconds: number | null;
    readonly runs: number;
    readonly problem?: string;
  }[];
  /** Of the sample. */
  readonly rows: number;
  readonly ratings: number;
  /** The clock: the GPU's where it has one. */
  readonly clock: 'gpu' | 'host';
  /** The reason why the measurement is kept for this process only; absent where it is stored. */
  readonly note?: string;
};

export interface ChoosingTasks {
  /**
   * Chooses among the variants of `update`, on devices that have several. Throws UsageError for one that
   * cannot run.
   */
  'choose-update': { inputs: None; outputs: None; params: UpdateProblem; values: KernelChoice };

  /**
   * Times the variants of `update` on rows of a block, so that `choose-update` takes the fastest for problems
   * like this one. `where-it-pays`: `tuning` is null where it is not worth the time, or was done before;
   * `thorough`: every variant that may be the fastest is measured, for as long as that takes.
   */
  'tune-update': {
    inputs: { block: PartitionRef };
    outputs: None;
    params: UpdateProblem & { readonly how: 'where-it-pays' | 'thorough' };
    values: { tuning: KernelTuning | null };
  };

  /**
   * Starts compiling for tasks `top-n`, those with bounds, or `rank-listed`, with exclusions or without,
   * while their inputs are on the way to the GPU.
   */
  'compile-search': {
    inputs: None;
    outputs: None;
    params: { readonly search: 'top-n' | 'rank-listed'; readonly excluding: boolean };
    values: None;
  };

  /**
   * Starts compiling the kernels of these variants of `update`, or with `implicit` of update-implicit, and of
   * its measures, while ratings are read.
   */
  'compile-update': {
    inputs: None;
    outputs: None;
    params: Pick<UpdateProblem, 'rank' | 'solver' | 'cgSteps' | 'biases' | 'implicit'> & {
      readonly variants: readonly string[];
    };
    values: None;
  };
}

/** The use of every input and output of these tasks. */
export const choosingContracts = {
  'choose-update': {},
  'tune-update': { block: 'read' },
  'compile-search': {},
  'compile-update': {},
} as const satisfies { readonly [K in keyof ChoosingTasks]: Readonly<Record<string, How>> };
