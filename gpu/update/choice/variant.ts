import type { ImplicitWeights, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import type { NormalEquationsParams } from '../../equations/normal-equations.ts';
import type { ExactSolver, RowRegularization, SolverChoice } from '../../../operators/tasks/task-types.ts';

/**
 * The kernel that sums A and b into slots, for rows that another kernel solves.
 *
 * - `vectors` does not sum A: it sums A p, once in each step of CG.
 * - `byRow`: a part refers to its row by row number, not by the row's index in the batch.
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

/** One way to solve the rows of a half-iteration; plans, models and `--kernel` use its name. */
export interface UpdateVariant {
  readonly name: string;
  /** Precision in which θ is read; sums are float32. With `int8`, dual systems read θ in float16. */
  readonly precision: 'f32' | 'f16' | 'int8';
  readonly sum: SumKernel;
  /**
   * Rows of up to `longest` ratings are summed and solved by CG in one kernel on tensor cores. Its
   * `workgroups` take rows from the list one after the other.
   *
   * - `halfA`: CG too runs on tensor cores, with A/n in float16 (cuMF_ALS, section 4.2); else A is in
   *   registers in float32.
   * - `room`: number of tiles of A/n that are in workgroup memory at the same time.
   */
  readonly fused?: {
    readonly bin: number;
    readonly longest: number;
    readonly workgroups: number;
    readonly halfA: boolean;
    readonly room?: number;
  };
  /** Most ratings of a row that is solved by its dual system on tensor cores (32 or 64); 0 for none. */
  readonly short: number;
  /** Rows short enough for workgroup memory are solved by CG without A. */
  readonly free: boolean;
  /** The solver of rows in slots reads A/n rounded to float16 (cuMF_ALS, section 4.2). */
  readonly halfA: boolean;
  /** CG keeps A in the registers of a workgroup, which requires subgroups; else the portable kernel runs. */
  readonly registers: boolean;
  /**
   * Rows with more ratings are cut into parts of this number of ratings. Large blocks use parts several
   * times larger.
   */
  readonly partRatings: number;
  /**
   * Bytes of a region of θ; a region fits the GPU's cache. Long rows are cut at the borders of regions, and
   * their pieces are processed region by region. 0: no regions.
   */
  readonly regionBytes: number;
  /**
   * A row is cut by regions only if it has on average this number of ratings in a region, since each piece
   * costs a slot.
   */
  readonly regionRatings: number;
  /** Rows are processed in order of descending length. False only to measure the gain of this order. */
  readonly sorted: boolean;
}
/** Parameters of one half-iteration, besides its inputs. */
export interface UpdateSettings extends RowRegularization {
  readonly variant: UpdateVariant;
  readonly from: number;
  readonly to: number;
  readonly rank: number;
  /** μ with biases, else 0. */
  readonly mean: number;
  readonly solver: RowSolver;
  /** Request the sum of the rows' objectives, from a variant that computes them. */
  readonly measured?: boolean;
  /** Power of two that scales the ratings into float16's range. */
  readonly scale: number;
  /** The weights of implicit data. Then λ is in the rows' shifts, and `lambda` is 0. */
  readonly implicit?: ImplicitWeights;
}

/** An exact solver, or CG with its steps. */
export type RowSolver = ExactSolver | { readonly steps: number };

/** The solver of a task's rows: on a GPU the same for all rows. */
export function solverOf({ cgBelow, cgSteps, exact = 'cholesky' }: SolverChoice): RowSolver {
  return cgBelow > 0 && exact === 'cholesky' ? { steps: cgSteps } : exact;
}

/** The solver's name in the choice of a variant. */
export function nameOf(solver: RowSolver): UpdateProblem['solver'] {
  return typeof solver === 'string' ? solver : 'cg';
}

/** The solver for a name and a number of steps. */
export function solverNamed({ solver, cgSteps }: Pick<UpdateProblem, 'solver' | 'cgSteps'>): RowSolver {
  return solver === 'cg' ? { steps: cgSteps } : solver;
}

/** Steps of CG, f_s; 0 for exact solves. */
export function stepsOf(solver: RowSolver): number {
  return typeof solver === 'string' ? 0 : solver.steps;
}
