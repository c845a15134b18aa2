/**
 * Tasks that choose a device's kernels, time them and start to compile them. Together with tasks.ts they are
 * the contract between operators and devices.
 */
import { type ExactSolver, type TaskTable, type } from './task-types.ts';

/**
 * The properties of a half-iteration (solving all rows of one side) on which the choice of a kernel variant
 * for `update` depends.
 */
export type UpdateProblem = {
  readonly rank: number;
  readonly solver: 'cg' | ExactSolver;
  readonly cgSteps: number;
  readonly precision: 'auto' | 'f32' | 'f16' | 'int8';
  readonly biases: boolean;
  /** True for `update-implicit`. */
  readonly implicit?: boolean;
  /** True: rows are drawn to priors. */
  readonly prior?: boolean;
  /** Number of rows to solve, and of rows of θ. */
  readonly rows: number;
  readonly columns: number;
  readonly ratings: number;
  /** Most iterations of the run. */
  readonly iterations: number;
  /** Number of ratings of the longest row. */
  readonly longest: number;
  /** Largest |rating|; for implicit data the largest of √w and t / √w. */
  readonly largestRating: number;
  /** Name of the variant that the caller requests. */
  readonly kernel?: string;
};

/**
 * The variant of a kernel that a device chooses for a problem, and the reason. It is part of the plan, so a
 * repeated run uses it again.
 */
export type KernelChoice = {
  readonly variant: string;
  readonly precision: 'f32' | 'f16' | 'int8';
  /** Power of two by which ratings are multiplied before they are rounded to float16. */
  readonly ratingScale: number;
  readonly reason: string;
  /** Device memory of the variant in addition to its inputs and outputs: work lists and copies in float16. */
  readonly deviceBytes: number;
  /**
   * Scratch buffers by name, such as partial sums. All kernels of a device share a buffer of one name, which
   * is as large as the kernel that needs most of it.
   */
  readonly scratchBytes?: Readonly<Record<string, number>>;
  /** True for kernels that return the loss of their rows (`objective` of `update`) on request. */
  readonly tellsLoss?: boolean;
};

/**
 * The result of timing variants of a kernel on rows of a block: all times, and the fastest variant, which the
 * device will choose.
 */
export type KernelTuning = {
  readonly variant: string;
  /**
   * The reason for the choice, such as "measured fastest of 7: 12.1 ms against 14.0 ms of tiled8-f32, sample
   * of 2,000,000 ratings".
   */
  readonly reason: string;
  /** In the order of timing. For a variant that failed, `milliseconds` is null and the problem is given. */
  readonly times: readonly {
    readonly variant: string;
    readonly milliseconds: number | null;
    readonly runs: number;
    readonly problem?: string;
  }[];
  /** Rows and ratings of the sample. */
  readonly rows: number;
  readonly ratings: number;
  /** Clock of the times: the GPU's if it has one. */
  readonly clock: 'gpu' | 'host';
  /** Reason why the measurement is kept only for this process; absent if it is stored. */
  readonly note?: string;
};

export const choosingTasks = {
  /**
   * Chooses among the variants of `update`, on devices that have several. Throws UsageError for a requested
   * variant that cannot run.
   */
  'choose-update': { params: type<UpdateProblem>(), values: type<KernelChoice>() },

  /**
   * Times the variants of `update` on rows of a block, so that `choose-update` takes the fastest for similar
   * problems. `where-it-pays`: `tuning` is null if it is not worth the time, or was done before. `thorough`:
   * measures every variant that may be the fastest, however long it takes.
   */
  'tune-update': {
    reads: ['block'],
    params: type<UpdateProblem & { readonly how: 'where-it-pays' | 'thorough' }>(),
    values: type<{ tuning: KernelTuning | null }>(),
  },

  /**
   * Starts compiling the shaders of `top-n` with bounds, or of `rank-listed` with or without exclusions,
   * while the inputs of such tasks are being sent to the GPU.
   */
  'compile-search': {
    params: type<{ readonly search: 'top-n' | 'rank-listed'; readonly excluding: boolean }>(),
  },

  /**
   * Starts compiling the kernels of these variants of `update` (with `implicit`, of `update-implicit`), and
   * of the tasks that measure its loss, while ratings are still being read.
   */
  'compile-update': {
    params: type<
      Pick<UpdateProblem, 'rank' | 'solver' | 'cgSteps' | 'biases' | 'implicit' | 'prior'> & {
        readonly variants: readonly string[];
      }
    >(),
  },

  /**
   * Starts compiling the kernels of an epoch of SGD on one GPU, and of the tasks that measure its loss, while
   * ratings are still being sorted.
   */
  'compile-sgd': {
    params: type<{
      readonly rank: number;
      readonly biases: boolean;
      readonly adaptive: boolean;
      readonly precision: 'f32' | 'f16';
      readonly steps:
        | {
            readonly kernel: 'sgd-tiles';
            /** Most columns of a tile. */
            readonly places: number;
            readonly lanes: number;
            readonly threads: number;
            readonly arithmetic: 'f32' | 'f16';
          }
        | { readonly kernel: 'sgd-waves'; readonly lanes: number };
    }>(),
  },
} as const satisfies TaskTable;
