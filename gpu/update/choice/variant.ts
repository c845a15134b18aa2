import type { ImplicitWeights, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import type { NormalEquationsParams } from '../../equations/normal-equations.ts';
import type { ExactSolver, RowRegularization, SolverChoice } from '../../../operators/tasks/task-types.ts';

/**
 * The kernel that computes A and b of rows or parts of rows and writes them to slots (scratch memory,
 * device/slots.ts), from which another kernel solves the rows.
 *
 * - `tensor`: on tensor cores in float16; `bin`: number of ratings that are copied to workgroup memory at a
 *   time.
 * - `int8`: on tensor cores in 8 bits.
 * - `vectors`: does not compute A. It computes the product A p in each step of CG. `byRow`: work lists refer
 *   to a row by its row number, not by its index in the batch.
 * - `tiled`: without tensor cores; each thread sums a tile of A in registers.
 */
export type SumKernel =
  | { readonly kernel: 'tensor'; readonly bin: number }
  | { readonly kernel: 'int8' }
  | {
      readonly kernel: 'vectors';
      readonly threads: number;
      readonly lanes: number;
      readonly width: number;
      readonly byRow?: boolean;
    }
  | ({ readonly kernel: 'tiled' } & Omit<
      NormalEquationsParams,
      'rank' | 'precision' | 'biases' | 'implicit'
    >);

/**
 * A variant: a choice of kernels, and of their settings, that together solve the rows of a half-iteration.
 * Plans, saved models and the option `--kernel` refer to it by its name.
 */
export interface UpdateVariant {
  readonly name: string;
  /** Precision in which θ is read. Sums are float32. With `int8`, dual systems read θ in float16. */
  readonly precision: 'f32' | 'f16' | 'int8';
  readonly sum: SumKernel;
  /**
   * Present if rows of at most `longest` ratings are solved by a fused kernel: it both computes A on tensor
   * cores and solves by CG.
   *
   * - `halfA`: CG also runs on tensor cores, with A / n in float16 (cuMF_ALS, section 4.2). Otherwise A is in
   *   float32 in registers.
   * - `room`: number of tiles of A / n that are in workgroup memory at the same time.
   */
  readonly fused?: {
    readonly bin: number;
    readonly longest: number;
    readonly halfA: boolean;
    readonly room?: number;
  };
  /**
   * Most ratings (32 or 64) of a row that is solved by its dual system, with n unknowns for n ratings, on
   * tensor cores. 0: no row is.
   */
  readonly short: number;
  /**
   * True: rows that are too long for the fused kernel are solved with A / n rounded to float16 (cuMF_ALS,
   * section 4.2); n: the row's number of ratings.
   */
  readonly halfA: boolean;
  /**
   * True: CG keeps A in the registers of a workgroup (solve-cg-registers), which requires subgroups. False:
   * the kernel solve-cg runs, on any GPU.
   */
  readonly registers: boolean;
  /**
   * Longer rows are cut into parts of at most this number of ratings, so that several workgroups share a row.
   * In large blocks the parts are several times larger (see partOf in prepared-rows.ts).
   */
  readonly partRatings: number;
  /**
   * Present if θ is divided into regions, ranges of rows of at most `bytes` bytes that fit the GPU's cache.
   * Long rows are cut where their columns enter the next region, and the parts are processed region by
   * region. A row is only cut so if it has on average at least `ratings` ratings in a region, since each part
   * needs scratch memory. Only CG by vectors gains: it reads θ in every step.
   */
  readonly regions?: { readonly bytes: number; readonly ratings: number };
}

/**
 * Regions for CG by vectors: half of the second-level cache of a large GPU. At rank 512 an iteration takes
 * 283 ms without regions and 190 ms with them. Where A is summed, regions gain nothing (0.95 to 1.03 of the
 * time at ranks 64 to 200).
 */
export const REGIONS = { bytes: 24 << 20, ratings: 2048 } as const;

/** Parameters of one half-iteration, besides its buffers. The rows [from, to) are solved. */
export interface UpdateSettings extends RowRegularization {
  readonly variant: UpdateVariant;
  readonly from: number;
  readonly to: number;
  readonly rank: number;
  /** The mean rating μ with biases, else 0. */
  readonly mean: number;
  readonly solver: RowSolver;
  /** True: also return the sum of the rows' objectives xᵀA x - 2 bᵀx. The variant must support it. */
  readonly measured?: boolean;
  /**
   * Power of two by which ratings are multiplied before they are rounded to float16 or 8 bits; solutions are
   * scaled back.
   */
  readonly scale: number;
  /**
   * The weights of implicit data; undefined for explicit ratings. With implicit data, `lambda` is 0: the
   * numbers that are added to the diagonals of A are given as a buffer, which contains λ.
   */
  readonly implicit?: ImplicitWeights;
}

/** The solver of rows: the name of an exact solver, or CG with a number of steps. */
export type RowSolver = ExactSolver | { readonly steps: number };

/**
 * The solver for a task's parameters; a GPU uses the same one for all rows of a task. It is CG if `cgBelow`
 * is greater than 0 and the exact solver is the default, Cholesky. Otherwise it is the exact solver.
 */
export function solverOf({ cgBelow, cgSteps, exact = 'cholesky' }: SolverChoice): RowSolver {
  return cgBelow > 0 && exact === 'cholesky' ? { steps: cgSteps } : exact;
}

/** The solver's name in the parameters by which a variant is chosen. */
export function nameOf(solver: RowSolver): UpdateProblem['solver'] {
  return typeof solver === 'string' ? solver : 'cg';
}

/** The solver for a name ('cg' or an exact solver) and a number of CG steps. */
export function solverNamed({ solver, cgSteps }: Pick<UpdateProblem, 'solver' | 'cgSteps'>): RowSolver {
  return solver === 'cg' ? { steps: cgSteps } : solver;
}

/** Number of CG steps (f_s in cuMF_ALS); 0 for an exact solver. */
export function stepsOf(solver: RowSolver): number {
  return typeof solver === 'string' ? 0 : solver.steps;
}
