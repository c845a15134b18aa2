/** Types shared by the descriptions of tasks: see tasks.ts. */
import type { JsonObject } from '../../engine/json.ts';
import type { PartitionRef } from '../../engine/partition.ts';
import type { How, TaskContracts } from '../../engine/run/step.ts';

/** The type of a task: its inputs and outputs by name, its parameters, and the values that it returns. */
export interface KernelTask {
  readonly inputs: Readonly<Record<string, PartitionRef>>;
  readonly outputs: Readonly<Record<string, PartitionRef>>;
  readonly params: JsonObject;
  readonly values: JsonObject;
}

/** No inputs, no outputs, no parameters, or no values. */
export type None = Readonly<Record<never, never>>;

/** The type of a task's parameters or values, in a TaskTable. */
export interface Typed<T extends JsonObject> {
  readonly type?: T;
}

/** Only for the compiler: says a type where a table has values. */
export function type<T extends JsonObject>(): Typed<T> {
  return {};
}

/**
 * Tasks by the names of their kernels. Among the names of inputs and outputs `name?` is optional, and `name.*` means
 * name.0, name.1, ...
 */
export type TaskTable = Readonly<
  Record<
    string,
    {
      /** The inputs. */
      readonly reads?: readonly string[];
      /** The outputs by their use: see How. */
      readonly writes?: readonly string[];
      readonly alone?: readonly string[];
      readonly params?: Typed<JsonObject>;
      readonly values?: Typed<JsonObject>;
    }
  >
>;

/** The types of the tasks of a table. */
export type TasksOf<Table extends TaskTable> = {
  readonly [K in keyof Table]: {
    readonly inputs: Refs<NamesOf<Table[K], 'reads'>>;
    readonly outputs: Refs<NamesOf<Table[K], 'writes'> | NamesOf<Table[K], 'alone'>>;
    readonly params: TypeOf<Table[K], 'params'>;
    readonly values: TypeOf<Table[K], 'values'>;
  };
};

type NamesOf<Task, Use extends string> = Task extends {
  readonly [use in Use]: readonly (infer Name extends string)[];
}
  ? Name
  : never;

type TypeOf<Task, Field extends string> = Task extends {
  readonly [field in Field]: Typed<infer Type extends JsonObject>;
}
  ? Type
  : None;

type Refs<Name extends string> = {
  readonly [name in Name as name extends `${string}?` | `${string}.*` ? never : name]: PartitionRef;
} & {
  readonly [name in Name as name extends `${infer Base}?` ? Base : never]?: PartitionRef;
} & {
  readonly [name in Name as name extends `${infer Base}.*` ? `${Base}.${number}` : never]: PartitionRef;
};

/** The uses of the inputs and outputs of a table's tasks. */
export function contractsOf(table: TaskTable): TaskContracts {
  const used = (names: readonly string[] = [], how: How) =>
    names.map((name) => [name.replace('?', ''), how] as const);
  return Object.fromEntries(
    Object.entries(table).map(([kernel, { reads, writes, alone }]) => [
      kernel,
      Object.fromEntries([...used(reads, 'read'), ...used(writes, 'write'), ...used(alone, 'alone')]),
    ]),
  );
}

/** The rows [from, to) of a block or of a matrix. */
export type Rows = { readonly from: number; readonly to: number };

/** Sums over the biases of rows: see `weighted-norm`. */
export type BiasSums = {
  readonly biasSum: number;
  readonly biasPlain: number;
  readonly biasAlong: number;
  /** Σ n_u β_u² where `biasSum` counts β_u - β₀: with `priorBias`. */
  readonly biasSquares?: number;
};

/** Regularization of a side's rows; n: number of a row's ratings. */
export type RowRegularization = {
  readonly lambda: number;
  /** ν of λ n^ν; default 1. */
  readonly exponent?: number;
  /** o of λ n^ν + o, in the ratings' own unit; default 0. */
  readonly offset?: number;
  /** d of a bias's λ n + d, in ratings; default 0. */
  readonly damping?: number;
  /**
   * λ of a bias, if it differs from `lambda`: if ratings are divided by a unit, λ of factors is too, but λ of
   * biases is not.
   */
  readonly biasLambda?: number;
};

/**
 * Rows with `from` to `to` ratings are solved by conjugate gradients tile by tile, that is with `tileRows`
 * rows of the fixed side at a time.
 */
export type Tiling = { readonly from: number; readonly to: number; readonly tileRows: number };

/**
 * The exact solver of a row's normal equations: Cholesky, or the minimum of ½ xᵀA x - bᵀx over x >= 0. Each
 * has its kernels under this name in cpu/tasks/solvers.ts and gpu/solve/exact-solvers.ts.
 */
export type ExactSolver = 'cholesky' | 'nonnegative';

export type SolverChoice = {
  /** Rows with fewer ratings than this are solved by matrix-free CG, the others exactly. 0: all exactly. */
  readonly cgBelow: number;
  /** Default 'cholesky'. Any other solver is used for all rows. */
  readonly exact?: ExactSolver;
  /** f_s of cuMF_ALS's Algorithm 1. */
  readonly cgSteps: number;
  /**
   * True: if the steps of CG leave a residual above 1e-5 of b, which is the accuracy of exact solves, the row
   * is solved exactly. Only on a CPU, and with previous factors of 0.
   */
  readonly settles?: boolean;
};

/** Values of a task that solves rows: see `update`. */
export type SolvedValues = {
  readonly badRow: number;
  readonly objective?: number;
  readonly objectives?: readonly number[];
};

/**
 * The kernel variant that the device chose for `update` of a side (see `choose-update`). Absent on a CPU, which
 * has one kernel.
 */
export type VariantChoice<Precision extends string = 'f32' | 'f16' | 'int8'> = {
  readonly variant?: string;
  readonly precision?: Precision;
  readonly ratingScale?: number;
};

/** Parameters of `update`. */
export type UpdateParams = SolverChoice &
  RowRegularization &
  VariantChoice &
  Rows & {
    readonly rank: number;
    readonly mean?: number;
    readonly measured?: boolean;
    /** Rows that a CPU solves tile by tile. */
    readonly tiled?: Tiling;
    /** Solves only these rows, or only the others. */
    readonly only?: 'tiled' | 'others';
    /**
     * The task's rows consist of several runs of adjacent rows; these are the first rows of all runs but the
     * first. The value `objectives` then has the objective of each run.
     */
    readonly runs?: readonly number[];
  };
