/**
 * The tasks of factorization: the whole contract between the operators and the devices (CPU threads, GPUs).
 * Devices register a handler for each kernel name and import only the types of this file.
 *
 * Partition layouts
 *
 *   rating-block   one block R(ij) in compressed rows. `offsets` Int32[rows + 1] (offsets[0] = 0), `indices`
 *                  Uint32[Nz] (ascending inside a row; positions in the other side's factors), `values` Float32[Nz].
 *                  As Arrow: List<Struct<item: uint32, rating: float32>>, the same three buffers.
 *   rows 0..2 :    offsets 0 2 3 3   indices 4 9 | 0 |    values 3.5 1 | 5 |      (row 2 has no ratings)
 *   factors        a matrix in the device's memory (`Device.allocate`): rows x f, stride padded to a multiple of
 *                  `Device.strideStep`, padding columns 0. Fetched: `values` Float32[rows * f].
 *   pairs          `rows` Uint32[k], `columns` Uint32[k]: positions of users and items.
 *   predictions    `values` Float32[k].
 *   top-n          `items` Uint32[rows * n], `scores` Float32[rows * n], best first; a row with fewer than n candidates
 *                  ends in 0xffffffff / NaN.
 */
import type { Task } from '../engine/task.ts';

export type * from './sgd-tasks.ts';

/** Brings its inputs, whatever they are, to the memory of a device that has its own; a CPU, which reaches them where they are, has no such task. */
export type UploadTask = Task<'upload', Record<string, never>>;

export type SolverChoice = {
  /** Rows with fewer ratings than this are solved by matrix-free CG, the others by Cholesky. 0: Cholesky always. */
  readonly cgBelow: number;
  /** f_s of cuMF_ALS's Algorithm 1. */
  readonly cgSteps: number;
};

/**
 * One fused half-iteration over the rows [from, to) of a block: for each row u the normal equations
 * A_u x_u = b_u, A_u = Σ θ_v θ_vᵀ + λ n_u I, b_u = Σ r_uv θ_v   (cuMF, eq. 2; cuMF_ALS, section II)
 * are formed and solved, and x_u is written to the output. Rows with n_u = 0 become zero.
 * Inputs: `block` rating-block, `fixed` factors (θ), `previous` factors (x of the last iteration: CG's warm start).
 * Output: `factors`. Values: `badRow` = first row of the range whose solution is not finite, or -1.
 *
 * With biases, r_uv ≈ μ + β_u + γ_v + x_uᵀθ_v: the last of the `rank` features of a fixed row is 1, so that the last number
 * solved for a row is its bias. Further inputs `fixedBias` (γ) and `previousBias`, further output `bias` (layout bias:
 * `values` Float32[rows], there already); what is solved for is r_uv - `mean` - γ_v, and the 1 is put back in the row.
 *
 * `nonnegative`: x_u is the minimum of ½ xᵀA_u x - b_uᵀx over x >= 0, found exactly whatever the solver choice says, and
 * `previous` tells which features the search starts from. A row that has none becomes NaN. Biases are not bounded.
 * A GPU does not have it.
 */
export type UpdateTask = Task<
  'update',
  SolverChoice & {
    readonly from: number;
    readonly to: number;
    readonly rank: number;
    readonly lambda: number;
    readonly mean?: number;
    readonly nonnegative?: boolean;
    /** What the device chose among its kernels (see `Device.choose`); absent on a CPU, which has one. */
    readonly variant?: string;
    readonly precision?: 'f32' | 'f16';
    readonly ratingScale?: number;
  }
>;

/**
 * Errors over the ratings of the rows [from, to): Values: `squared` = Σ (r_uv - x_uᵀθ_v)², `absolute` = Σ |..|,
 * `count`, all summed in float64 in row order. Inputs: `block`, `rowFactors`, `columnFactors`; with biases `rowBias`,
 * `columnBias` too, for r_uv - (`mean` + β_u + γ_v + x_uᵀθ_v) without the product of the two features that are 1.
 */
export type SquaredErrorTask = Task<'squared-error', { readonly from: number; readonly to: number; readonly rank: number; readonly mean?: number }>;

/** Σ n_u ‖x_u‖² over the rows [from, to), in float64. Inputs: `block` (for n_u), `factors`. Values: `sum`. */
export type WeightedNormTask = Task<'weighted-norm', { readonly from: number; readonly to: number; readonly rank: number }>;

/** x_uᵀθ_v for each pair. Inputs: `pairs`, `rowFactors`, `columnFactors`. Output: `predictions`. */
export type PredictTask = Task<'predict', { readonly rank: number }>;

/**
 * The n best columns of each row of [from, to) by x_uᵀθ_v, ties by lower column. Inputs: `rowFactors`, `columnFactors`,
 * and optionally `exclude`: a rating-block over the same rows whose columns are left out; `bounds` (layout column-bounds:
 * `values` Float32[columns / 8 rounded up]: no θ from column 8 i on is longer than values[i], with room for rounding), which
 * lets a kernel leave out columns that cannot be among the best. Row 0 of `rowFactors` is row `rowStart` (default 0) of
 * `exclude`. Output: `top` (rows to - from).
 */
export type TopNTask = Task<'top-n', { readonly from: number; readonly to: number; readonly rank: number; readonly n: number; readonly rowStart?: number }>;

/** Tells a GPU that top-n tasks will come, with exclusions or without and with bounds: compiling goes on while their inputs are on the way. */
export type CompileTopNTask = Task<'compile-top-n', { readonly excluding: boolean }>;

/**
 * Writes rows [from, to) as unit-norm Gaussian rows, drawn by a counter-based generator keyed by (seed, keyHashes[row]),
 * so that a row's start depends on its external id alone. Input: `keys` (layout key-hashes: `low`, `high` Uint32[rows]).
 * Output: `factors`. `one`: the column after the rank, a feature of biases, becomes 1. `nonnegative`: the factors are the
 * absolute values. For SGD: `norm` instead of 1; `shift` is added to each factor; `first` is the column of the first factor
 * (default 0), and `oneAt` one before it that becomes 1.
 */
export type InitializeTask = Task<
  'initialize',
  {
    readonly from: number;
    readonly to: number;
    readonly rank: number;
    readonly seed: number;
    readonly one?: boolean;
    readonly nonnegative?: boolean;
    readonly norm?: number;
    readonly shift?: number;
    readonly first?: number;
    readonly oneAt?: number;
  }
>;

/**
 * Turns external ids into numbers of their own within one chunk of rows.
 * Input: `ids` (layout key-pairs: the key arrays of users, prefix "user", and of items, prefix "item").
 * Outputs: `codes` (`users` Uint32[rows], `items` Uint32[rows]), `users` and `items` (the distinct keys by code, prefix
 * "key", and `counts` Int32: how often each occurs).
 */
export type NumberKeysTask = Task<'number-keys', { readonly rows: number }>;

/*
 * Sorting ratings into compressed rows, in two steps that both stay within the processor's caches and page tables.
 * A *band* is a run of adjacent rows with some ten thousand ratings together.
 *
 *   1. Ratings are scattered to their bands, in any order within a band: column and value to where the band lies in the
 *      block, the row beside them in `rows` (layout row-numbers: `rows` Uint32[Nz]).
 *   2. Each band is sorted in its place, by column, then stably by row. Sorting a sorted band changes nothing.
 *
 * Both steps are cut into groups that fill places of their own, known from counts before anything is written.
 */

/** Layout row-bands: `bandOf` Uint16[rows], `firstRow` Int32[bands + 1]. */
type FromPairs = { readonly chunks: number; readonly bands: number; readonly by: 'users' | 'items' };
type FromBlock = { readonly from: number; readonly to: number; readonly bands: number };

/**
 * Counts the ratings of each band among the chunks of one group. Inputs: `bands`; of chunk i `codes.i` and, where codes
 * are the chunk's own, `rowMap.i` (`map` Uint32: code -> position). `by` says which code is the row. Output: `counts`
 * (`counts` Int32[bands]).
 */
export type CountPairsTask = Task<'count-pairs', FromPairs>;

/**
 * Scatters the chunks of one group to their bands. Inputs as for count-pairs, and `columnMap.i`, `values.i` (Float32, or
 * Uint32 to carry row numbers), `cursors` (`cursors` Int32[bands]: where this group's first rating of each band goes).
 * Outputs, there already: `block`, `rows`.
 */
export type ScatterPairsTask = Task<'scatter-pairs', FromPairs>;

/** The same two for a transposition: from the rows [from, to) of `block`, whose columns become the rows of `transposed`. */
export type CountColumnsTask = Task<'count-columns', FromBlock>;
export type ScatterColumnsTask = Task<'scatter-columns', FromBlock>;

/**
 * Sorts the bands [from, to). Input: `bands`. Outputs, there already and filled by the scattering tasks: `block` with its
 * offsets, `rows`. `ordered`: the columns of each row ascend already (a transposition reads rows in order). `columns`: how
 * many there are.
 */
export type SortBandsTask = Task<'sort-bands', { readonly from: number; readonly to: number; readonly columns: number; readonly ordered: boolean }>;

/** What to do with several ratings of one (user, item) pair. `keep` orders them by value, so that row order never matters. */
export type DuplicatePolicy = 'keep' | 'error' | 'last' | 'mean' | 'sum';

/**
 * Looks for ratings of the same column in a row of a block whose indices ascend. Output `lengths` (`lengths` Int32[to - from]:
 * the rows' lengths once duplicates are one). Values: `extra` (ratings beyond the first of their pair), `row`, `column` of
 * the first pair (-1 when there is none).
 */
export type FindDuplicatesTask = Task<'find-duplicates', { readonly from: number; readonly to: number }>;

/**
 * Writes the rows [from, to) with their duplicates combined. Inputs: `block`; for `last`, whose block carries row numbers
 * as values, `rowData` (`ratings` Float32, `timestamps` Float64, by row number): the latest wins, ties by the larger
 * rating. Output: `combined`, there already with its offsets.
 */
export type CombineDuplicatesTask = Task<
  'combine-duplicates',
  { readonly from: number; readonly to: number; readonly policy: Exclude<DuplicatePolicy, 'error'> }
>;
