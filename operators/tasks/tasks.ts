/**
 * The tasks of factorization: the whole contract between operators and devices (CPU threads, GPUs). Devices
 * register a handler for each kernel name and import only the types of this file.
 *
 * Partition layouts
 *
 *   rating-block   one block R(ij) in compressed rows. `offsets` Int32[rows + 1] (offsets[0] = 0), `indices`
 *                  Uint32[Nz] (ascending inside a row; positions in the other side's factors), `values` Float32[Nz].
 *                  As Arrow: List<Struct<item: uint32, rating: float32>>, the same three buffers.
 *   rows 0..2 :    offsets 0 2 3 3   indices 4 9 | 0 |    values 3.5 1 | 5 |      (row 2 has no ratings)
 *   factors        a matrix in the device's memory (`Device.allocate`): rows x f, stride padded to a multiple of
 *                  `DeviceInfo.strideStep`. Fetched: `values` Float32[rows * f]. After every task the padding columns
 *                  of the rows that it wrote are 0, except of a row that is not finite, and of a matrix whose layout
 *                  says otherwise. Kernels read the padding as features.
 *   bias           `values` Float32[rows].
 *   row-totals     `values` Float32[rows]: Σ (r - μ) of each row.
 *   row-anchors    `values` Uint8[rows]: 1 for rows that have earlier ratings.
 *   pairs          `rows` Uint32[k], `columns` Uint32[k]: positions of users and items.
 *   predictions    `values` Float32[k].
 *   top-n          `items` Uint32[rows * n], `scores` Float32[rows * n], best first; a row with fewer than n candidates
 *                  ends in 0xffffffff / NaN.
 *   places         `values` Uint32[k]: ranks from 0.
 */
import type { Partition } from '../../engine/partition.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { attributeTasks } from './attribute-tasks.ts';
import { baselineTasks } from './baseline-tasks.ts';
import { choosingTasks } from './choosing-tasks.ts';
import { dataTasks } from './data-tasks.ts';
import { equationTasks } from './equation-tasks.ts';
import { implicitTasks } from './implicit-tasks.ts';
import { listTasks } from './list-tasks.ts';
import { readingTasks } from './reading-tasks.ts';
import { type RowSolving, searchTasks } from './search-tasks.ts';
import { sgdTasks } from './sgd-tasks.ts';
import { vectorTasks } from './vector-tasks.ts';
import {
  type BiasSums,
  contractsOf,
  type KernelTask,
  type Rows,
  type SolvedValues,
  type TasksOf,
  type TaskTable,
  type,
  type UpdateParams,
} from './task-types.ts';

export type { KernelChoice, KernelTuning, UpdateProblem } from './choosing-tasks.ts';
export type { ImplicitWeights } from './implicit-tasks.ts';
export type { DuplicatePolicy } from './data-tasks.ts';
export type { ListSearch, VectorShape } from './list-tasks.ts';
export type { SgdStep } from './sgd-tasks.ts';

/** A task that will read all rows of a block, without its inputs. `columns`: number of rows of θ. */
export type RowsTask = { readonly biases: boolean; readonly columns: number } & (
  | RowSolving
  | {
      readonly kernel: 'normal-equations';
      readonly params: Omit<TasksOf<typeof equationTasks>['normal-equations']['params'], 'from' | 'to'>;
    }
);

/** Every kernel. The other files *-tasks.ts of this folder have the tasks of one subject each. */
const tasks = {
  /**
   * Copies a partition of any layout to a device with its own memory (a CPU device has no such task). For a
   * block of ratings, `rows` is a later task that reads it: the lists of rows for its kernels are made too,
   * and for normal-equations compiling starts. `transposeOf`: a block that is the transpose of the data; a
   * device that has it copies the values from it.
   */
  upload: { reads: ['data', 'transposeOf?'], params: type<{ readonly rows?: RowsTask }>() },

  /**
   * Solves the rows [from, to) of a block of ratings, the work of ALS in one task. For each row u it forms
   * and solves the normal equations A_u x_u = b_u, A_u = Σ θ_v θ_vᵀ + (λ n^ν + o) I, b_u = Σ r_uv θ_v
   * (cuMF, eq. 2; cuMF_ALS, section II; ν and o: Rendle et al. 2021, On the difficulty of evaluating
   * baselines, and RowRegularization), and writes x_u to the output. Rows with n_u = 0 become zero. Inputs:
   * `block` rating-block, `fixed` factors (θ), `previous` factors (x of the last iteration: CG's warm start).
   * Output: `factors`. Values: `badRow` = first row of the range whose solution is not finite, or -1;
   * `objective` = Σ_u xᵀA_u x - 2 b_uᵀx, in float64 in row order, computed from the solver's own numbers.
   * Added to Σ r² it is the rows' part of the loss, including their penalty. A GPU returns it if `measured`
   * is set.
   *
   * With biases, r_uv ≈ μ + β_u + γ_v + x_uᵀθ_v, and β_u is solved together with x_u; its term in the
   * minimized loss is (λ n + d) β_u². Further input `fixedBias` (γ), further output `bias` (layout bias,
   * already allocated). Rows are solved for r_uv - `mean` - γ_v; `objective` is to be added to the squares of
   * these.
   *
   * `exact: 'nonnegative'`: x_u is the minimum of ½ xᵀA_u x - b_uᵀx over x >= 0; the search starts from the
   * features above 0 of `previous`. A row without a minimum is bad. Biases are not restricted.
   *
   * With `prior` (factors, a_u) and with biases `priorBias` (bias, β₀), rows are drawn to these in place of
   * zero: the minimized terms are (λ n^ν + o) ‖x_u - a_u‖² and (λ n + d) (β_u - β₀)², `objective` includes the
   * terms' constants, and a row with n_u = 0 becomes its prior.
   */
  update: {
    reads: ['block', 'fixed', 'previous', 'fixedBias?', 'prior?', 'priorBias?'],
    writes: ['factors', 'bias?'],
    params: type<UpdateParams>(),
    values: type<SolvedValues>(),
  },

  /**
   * The errors of predictions over the ratings of the rows [from, to). Values: `squared` = Σ (r_uv -
   * x_uᵀθ_v)², `absolute` = Σ |..|, `count`, all summed in float64 in row order. Inputs: `block`,
   * `rowFactors`, `columnFactors`; with biases also `rowBias`, `columnBias`, for r_uv - (`mean` + β_u + γ_v +
   * x_uᵀθ_v).
   */
  'squared-error': {
    reads: ['block', 'rowFactors', 'columnFactors', 'rowBias?', 'columnBias?'],
    params: type<Rows & { readonly rank: number; readonly mean?: number }>(),
    values: type<{ squared: number; absolute: number; count: number }>(),
  },

  /**
   * Squared norms of the rows [from, to) that have ratings, for the penalty of the loss. In float64:
   * - `sum` = Σ n_u^ν ‖x_u‖², with n_u from `block` and ν = `exponent` (default 1); or with the input
   *   `shifts` (row-shifts) in place of `block`, Σ shift_u ‖x_u‖² over the rows whose shift is not 0
   *   Without both every row weighs 1
   * - `plain` = Σ ‖x_u‖² of the same rows; with `plainWeights` Σ w_k x_uk², where the three numbers are w of
   *   the first feature, of the second, and of all others
   * - with `bias` (β): `biasSum` = Σ n_u β_u², `biasPlain` = Σ β_u²; with `totals` (T): `biasAlong` = Σ T_u
   *   β_u
   * - with `prior` and `priorBias` x_u - a_u and β_u - β₀ in place of x_u and β_u, except in `biasAlong`, and not
   *   with `plainWeights`
   */
  'weighted-norm': {
    reads: ['block?', 'shifts?', 'factors', 'bias?', 'totals?', 'prior?', 'priorBias?'],
    params: type<
      Rows & {
        readonly rank: number;
        readonly exponent?: number;
        readonly plainWeights?: readonly [number, number, number];
      }
    >(),
    values: type<{ sum: number; plain: number } & Partial<BiasSums>>(),
  },

  /**
   * x_uᵀθ_v for each pair. Inputs: `pairs`, and `rowFactors`, `columnFactors`: matrices, or on a CPU both as
   * host memory (layout factor-rows, `values` Float32[rows x rank]). Output: `predictions`.
   */
  predict: {
    reads: ['pairs', 'rowFactors', 'columnFactors'],
    writes: ['predictions'],
    params: type<{ readonly rank: number }>(),
  },

  /**
   * The n best columns of each row in [from, to) by x_uᵀθ_v, ties by lower item. Output: `top` (rows to -
   * from), with columns, or with their items if the input `order` is given (layout column-order: `values`
   * Uint32[columns], distinct). Inputs: `rowFactors`, `columnFactors`, and optionally:
   *
   * - `order`
   * - `exclude`: a rating-block over the same rows with the items (or columns) to leave out, ascending; its
   *   row `rowStart` (default 0) is row 0 of `rowFactors`
   * - `bounds` (layout column-bounds: `values` Float32[columns / 8 rounded up]): values[i] is at least the
   *   norm of every θ from column 8 i on, including rounding, so that a kernel can skip columns that cannot
   *   be among the best
   */
  'top-n': {
    reads: ['rowFactors', 'columnFactors', 'exclude?', 'bounds?', 'order?'],
    writes: ['top'],
    params: type<Rows & { readonly rank: number; readonly n: number; readonly rowStart?: number }>(),
  },

  /**
   * The rank of each listed column of the rows [from, to) among all columns by x_uᵀθ_v: the number of columns
   * with a higher score; and its ties, the number of columns with the same score, itself among them. Inputs:
   * `rowFactors`, `columnFactors`, and rating-blocks over the same rows, whose values are not read: `listed`,
   * with distinct columns in each row, and optionally `exclude`, whose columns are not counted and must not
   * be listed. A column with score NaN or -Infinity ranks after all others and has 0 ties.
   *
   * Output: `places`, two Uint32 for each entry of `listed` in these rows, rank and ties. If it was allocated
   * before, it has two numbers for every entry, and the part for these rows is written. Ranks from `depth` on
   * (default: none) may be any number of at least `depth`, with any ties, so that a kernel can stop counting.
   */
  'rank-listed': {
    reads: ['rowFactors', 'columnFactors', 'listed', 'exclude?'],
    writes: ['places'],
    params: type<Rows & { readonly rank: number; readonly depth?: number }>(),
  },

  /**
   * Draws the initial factors of the rows [from, to): Gaussian rows of norm 1 from a counter-based generator
   * keyed by (seed, keyHashes[row]), so that they depend only on a row's external id. Input: `keys` (layout
   * key-hashes: `low`, `high` Uint32[rows]). Output: `factors`, a matrix or a vector of rows x rank.
   * `nonnegative`: takes the absolute values. For SGD: `norm` instead of 1; `shift` is added to each factor;
   * `first` is the column of the first factor (default 0), and `oneAt` an earlier column that becomes 1.
   */
  initialize: {
    reads: ['keys'],
    writes: ['factors'],
    params: type<
      Rows & {
        readonly rank: number;
        readonly seed: number;
        readonly nonnegative?: boolean;
        readonly norm?: number;
        readonly shift?: number;
        readonly first?: number;
        readonly oneAt?: number;
      }
    >(),
  },

  ...attributeTasks,
  ...baselineTasks,
  ...choosingTasks,
  ...dataTasks,
  ...equationTasks,
  ...implicitTasks,
  ...listTasks,
  ...readingTasks,
  ...searchTasks,
  ...sgdTasks,
  ...vectorTasks,
} as const satisfies TaskTable;

export interface KernelTasks extends TasksOf<typeof tasks> {}

/** For every kernel, the use of each input and output: see How. */
export const contracts = contractsOf(tasks);

export type KernelName = keyof KernelTasks;
export type ParamsOf<K extends KernelName> = KernelTasks[K]['params'];
export type ValuesOf<K extends KernelName> = KernelTasks[K]['values'];

/** A task of one kernel. */
export interface TaskOf<K extends KernelName> {
  readonly kernel: K;
  readonly inputs: KernelTasks[K]['inputs'];
  readonly outputs: KernelTasks[K]['outputs'];
  readonly params: ParamsOf<K>;
}

/** A handler's result: the task's values, and the outputs for which no memory was allocated before. */
export type OutcomeOf<T extends KernelTask> = Omit<TaskOutcome, 'values' | 'partitions'> & {
  readonly partitions?: { readonly [name in keyof T['outputs']]: Partition };
} & (keyof T['values'] extends never ? { readonly values?: undefined } : { readonly values: T['values'] });
