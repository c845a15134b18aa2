/** The types that the descriptions of tasks share: see tasks.ts. */
import type { JsonObject } from '../../engine/json.ts';
import type { PartitionRef } from '../../engine/partition.ts';

/**
 * A kernel's inputs and outputs by the task's names for them, its parameters, and the values that it gives.
 */
export interface KernelTask {
  readonly inputs: Readonly<Record<string, PartitionRef>>;
  readonly outputs: Readonly<Record<string, PartitionRef>>;
  readonly params: JsonObject;
  readonly values: JsonObject;
}

/** No inputs, no outputs, no parameters, or no values. */
export type None = Readonly<Record<never, never>>;

/** Partitions named name.0, name.1, ... */
export type Numbered<Name extends string> = { readonly [name in `${Name}.${number}`]: PartitionRef };

/** The rows [from, to) of a block or of a matrix. */
export type Rows = { readonly from: number; readonly to: number };

/** Sums over the biases of rows: see `weighted-norm`. */
export type BiasSums = { readonly biasSum: number; readonly biasPlain: number; readonly biasAlong: number };

/** Regularization of the rows of a side; n: a row's ratings. */
export type RowRegularization = {
  readonly lambda: number;
  /** ν of λ n^ν; default 1. */
  readonly exponent?: number;
  /** o of λ n^ν + o, in the ratings' own unit; default 0. */
  readonly offset?: number;
  /** d of a bias's λ n + d, in ratings; default 0. */
  readonly damping?: number;
  /** λ of a bias, where it differs: λ of factors has the unit of the ratings, λ of biases has no unit. */
  readonly biasLambda?: number;
};

/**
 * Rows with `from` to `to` ratings, which are solved by conjugate gradients tile by tile, `tileRows` rows of
 * the fixed side at a time.
 */
export type Tiling = { readonly from: number; readonly to: number; readonly tileRows: number };

/**
 * How a row's normal equations are solved exactly: by Cholesky, or as the minimum of ½ xᵀA x - bᵀx over x >=
 * 0. Each has its kernels by this name in cpu/tasks/solvers.ts and gpu/solve/exact-solvers.ts.
 */
export type ExactSolver = 'cholesky' | 'nonnegative';

export type SolverChoice = {
  /** Rows with fewer ratings than this are solved by matrix-free CG, the others exactly. 0: all exactly. */
  readonly cgBelow: number;
  /** Default 'cholesky'; any other solves all rows. */
  readonly exact?: ExactSolver;
  /** f_s of cuMF_ALS's Algorithm 1. */
  readonly cgSteps: number;
  /**
   * True solves a row exactly where CG's steps leave a residual above 1e-5 of b, the bound of exact solves;
   * on the CPU, from previous factors of 0.
   */
  readonly settles?: boolean;
};

/** The values of a task that solves rows: see `update`. */
export type SolvedValues = {
  readonly badRow: number;
  readonly objective?: number;
  readonly objectives?: readonly number[];
};

/** Parameters of `update`. */
export type UpdateParams = SolverChoice &
  RowRegularization &
  Rows & {
    readonly rank: number;
    readonly mean?: number;
    readonly measured?: boolean;
    /** The rows that are solved tile by tile, on a CPU. */
    readonly tiled?: Tiling;
    /** Solves only those rows, or only the others. */
    readonly only?: 'tiled' | 'others';
    /** The first rows of further runs of rows. The value `objectives` then has the objective of each run. */
    readonly runs?: readonly number[];
    /** The device's choice among its kernels (see `choose-update`); absent on a CPU, which has one. */
    readonly variant?: string;
    readonly precision?: 'f32' | 'f16' | 'int8';
    readonly ratingScale?: number;
  };
