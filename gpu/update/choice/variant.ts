import type { ImplicitWeights, UpdateProblem } from '../../../operators/tasks/tasks.ts';
import type { NormalEquationsParams } from '../../equations/normal-equations.ts';
import type { ExactSolver, RowRegularization, SolverChoice } from '../../../operators/tasks/task-types.ts';

/**
 * The kernel that sums A and b to slots, for rows that another kernel solves; `vectors` sums A p instead, in
 * each step of CG; `byRow`: parts name their rows, not the rows' places in a batch.
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
  /** Precision in which θ is gathered; sums are float32. Dual systems gather float16 with `int8`. */
  readonly precision: 'f32' | 'f16' | 'int8';
  readonly sum: SumKernel;
  /**
   * Rows of up to `longest` ratings are solved by CG in the kernel that sums them on tensor cores;
   * `workgroups` walk the list. `halfA`: CG multiplies A/n in float16 there as well (cuMF_ALS, section 4.2),
   * else A stays in registers in float32. `room`: tiles of A/n that pass through workgroup memory together.
   *
   */
  readonly fused?: {
    readonly bin: number;
    readonly longest: number;
    readonly workgroups: number;
    readonly halfA: boolean;
    readonly room?: number;
  };
  /** Longest row that is solved by its dual system on tensor cores (32 or 64); 0 for none. */
  readonly short: number;
  /** Rows short enough for workgroup memory are solved by CG without A. */
  readonly free: boolean;
  /** The solver of rows in slots sees A/n rounded to float16 (cuMF_ALS, section 4.2). */
  readonly halfA: boolean;
  /** CG keeps A in the registers of a workgroup, which needs subgroups; else the portable kernel runs. */
  readonly registers: boolean;
  /** Rows of more ratings are cut into parts, in large blocks rows of several times as many. */
  readonly partRatings: number;
  /**
   * Bytes of a region of θ that the GPU's cache holds: long rows are cut and ordered by regions. 0 for no
   * regions.
   */
  readonly regionBytes: number;
  /** Ratings of a row in a region, on average, from which it is cut by regions: each piece costs a slot. */
  readonly regionRatings: number;
  /** Rows are taken by falling length; off only to measure the gain. */
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
  /** Asks for the sum of the rows' objectives, of a variant that tells them. */
  readonly measured?: boolean;
  /** Power of two that keeps the ratings within float16. */
  readonly scale: number;
  /** The weights of implicit data, whose λ is in the rows' shifts; `lambda` is 0. */
  readonly implicit?: ImplicitWeights;
}

/** An exact solver, or CG with its steps. */
export type RowSolver = ExactSolver | { readonly steps: number };

/** The solver of a task's rows: on a GPU all rows have one. */
export function solverOf({ cgBelow, cgSteps, exact = 'cholesky' }: SolverChoice): RowSolver {
  return cgBelow > 0 && exact === 'cholesky' ? { steps: cgSteps } : exact;
}

/** As the choice of a variant names it. */
export function nameOf(solver: RowSolver): UpdateProblem['solver'] {
  return typeof solver === 'string' ? solver : 'cg';
}

/** The solver that a name and steps give. */
export function solverNamed({ solver, cgSteps }: Pick<UpdateProblem, 'solver' | 'cgSteps'>): RowSolver {
  return solver === 'cg' ? { steps: cgSteps } : solver;
}

/** Steps of CG, f_s; 0 for exact solves. */
export function stepsOf(solver: RowSolver): number {
  return typeof solver === 'string' ? 0 : solver.steps;
}
