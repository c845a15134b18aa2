import type { ListKernels } from './list-kernels.ts';
import type { NumberingKernels } from './numbering-kernels.ts';
import type { SearchKernels } from './search-kernels.ts';
import type { TiledKernels } from './tiled-kernels.ts';
import type { VectorKernels } from './vector-kernels.ts';

/**
 * The WebAssembly kernels of cpu/assembly, where equations and layouts stand.
 *
 * Contract: all addresses are bytes in the shared memory, 16-byte aligned for matrices; `size` is the bytes
 * of one factor row, 4 * stride, stride a multiple of 8, padding columns 0. Indices are not checked against
 * the number of rows. A kernel keeps no state, and its result depends on its arguments alone.
 *
 */
export interface Kernels extends ListKernels, NumberingKernels, SearchKernels, TiledKernels, VectorKernels {
  /**
   * A (upper triangle, stride x stride), b and, where `sums` is not 0, Σ θ of `count` > 0 ratings; added when
   * `accumulate` is 1. work: 34 * size + size² / 4 bytes.
   */
  addNormalEquations(
    theta: number,
    size: number,
    indices: number,
    values: number,
    count: number,
    matrix: number,
    bias: number,
    sums: number,
    work: number,
    accumulate: 0 | 1,
  ): void;
  /** Adds `value` to the first `rank` diagonal elements and 1 to the padding's. */
  addDiagonal(matrix: number, size: number, rank: number, value: number): void;
  /** A x = b; A and b are overwritten; inverse: size bytes. 0 when A is not positive definite. */
  solveCholesky(matrix: number, size: number, b: number, x: number, inverse: number): 0 | 1;
  /**
   * The same x through the count x count dual, and with `ratio` > 0 a row's bias, whose place is `bias`. With
   * w = 4 * count rounded up to 32: matrix w² / 4, transposed w * (size / 4 + 1), work 3 w bytes.
   *
   */
  solveDual(
    theta: number,
    size: number,
    indices: number,
    values: number,
    count: number,
    shift: number,
    ratio: number,
    bias: number,
    x: number,
    matrix: number,
    transposed: number,
    work: number,
    objective: number,
  ): 0 | 1;
  /**
   * CG on a formed A (upper triangle), warm-started from x. work: 3 * size + 128 bytes. objective: where the
   * float64 xᵀA x - 2 bᵀx goes, as in solveDual and solveMatrixFree.
   */
  solveFormed(
    matrix: number,
    size: number,
    b: number,
    x: number,
    steps: number,
    work: number,
    objective: number,
  ): void;
  /**
   * CG without A over count > 0 ratings; the panels of the first `kept` (a positive multiple of 8) are kept
   * between passes. panels: `size` bytes for each of min(kept, count rounded up to 8), and 8 * size more;
   * work: 3 * size + 128 bytes. sums: 0, or where Σ θ goes for a row's bias, of which `weight` is c and
   * `total` is t. With `settles` 1 where the residual is as small as exact solves leave it, else 0.
   *
   */
  solveMatrixFree(
    theta: number,
    size: number,
    indices: number,
    values: number,
    count: number,
    kept: number,
    shift: number,
    sums: number,
    weight: number,
    total: number,
    x: number,
    steps: number,
    settles: 0 | 1,
    panels: number,
    work: number,
    objective: number,
    far: 0 | 1,
  ): 0 | 1;
  /**
   * Half an iteration over `rows` rows with their ratings in memory. Gives the first row without a finite
   * solution, or -1. `shifts`: Float32[rows]; `ownShifts` and `biases`: Float32[rows] for biases, or 0.
   * `objective`: a float64 that the rows' objectives are added to, see the task `update`. `far`: 1 where Θ is
   * larger than the caches, so that its rows are requested ahead; it changes no bits.
   *
   */
  updateRows(
    theta: number,
    size: number,
    rank: number,
    offsets: number,
    indices: number,
    values: number,
    rows: number,
    shifts: number,
    ownShifts: number,
    biases: number,
    output: number,
    previous: number,
    cgBelow: number,
    steps: number,
    settles: 0 | 1,
    nonnegative: 0 | 1,
    workspace: number,
    workspaceBytes: number,
    objective: number,
    far: 0 | 1,
  ): number;
  /**
   * The rows of the task `initialize`: of `rank` normal numbers with length `norm`, plus `shift`, as
   * functions of keys (low, high: Uint32[rows]), which the seed's halves are mixed into. output: rows of
   * `stride` numbers, 0 beside the factors from `first` on, and 1 at `oneAt` unless that is negative. work:
   * 12 bytes for each of rank rounded up to 4.
   *
   */
  drawRows(
    low: number,
    high: number,
    rows: number,
    seedLow: number,
    seedHigh: number,
    rank: number,
    absolute: 0 | 1,
    norm: number,
    shift: number,
    output: number,
    stride: number,
    first: number,
    oneAt: number,
    work: number,
  ): void;
  /** y += a x; `bytes`: a multiple of 16. */
  addMultiple(y: number, a: number, x: number, bytes: number): void;
  /** Σ of `count` numbers in float64. */
  sumOf(values: number, count: number): number;
  /**
   * Adds a part of a row too long for one call to the workspace's A and b, and when `biased` is 1 to its Σ θ.
   */
  accumulateRow(
    theta: number,
    size: number,
    indices: number,
    values: number,
    count: number,
    biased: 0 | 1,
    accumulate: 0 | 1,
    workspace: number,
  ): void;
  /**
   * Solves the accumulated row; 0 when the solution is not finite. `weight`: c of its bias, or 0; `total`: t;
   * `bias`: its place; `method`: 0 CG, 1 exact, 2 non-negative.
   */
  solveAccumulated(
    size: number,
    rank: number,
    shift: number,
    weight: number,
    total: number,
    bias: number,
    output: number,
    previous: number,
    method: 0 | 1 | 2,
    steps: number,
    workspace: number,
  ): 0 | 1;
  /** The place in a workspace of the last solved row's objective, a float64. */
  objectiveOf(workspace: number, size: number): number;
  /**
   * Adds the workspace's A, b and, when `biased` is 1, Σ θ to a row of equations
   * (operators/tasks/equation-tasks.ts), whose n grows by `count` and t by `total`.
   */
  addToEquations(
    equations: number,
    size: number,
    rank: number,
    count: number,
    total: number,
    biased: 0 | 1,
    workspace: number,
  ): void;
  /** Writes a row of equations to the workspace, for solveAccumulated and its likes. */
  takeEquations(equations: number, size: number, rank: number, biased: 0 | 1, workspace: number): void;
  /**
   * min ½ xᵀA x - bᵀx with x >= 0, starting from the features where previous > 0. A (upper triangle) gets its
   * lower one. work: 14 * size + size² / 2 bytes. 0, and x = NaN, when there is no finite solution.
   *
   */
  solveNonnegative(
    matrix: number,
    size: number,
    rank: number,
    bias: number,
    x: number,
    previous: number,
    work: number,
  ): 0 | 1;
  /** Adds Σ e² and Σ |e| to the two float64 at `sums`. */
  addErrors(
    rowFactors: number,
    columnFactors: number,
    size: number,
    offsets: number,
    indices: number,
    values: number,
    rows: number,
    sums: number,
  ): void;
  /**
   * Adds Σ n_u ‖x_u‖² and Σ ‖x_u‖² to the two float64 at `sums`; `weights`: 0, or Float64[rows] in place of
   * n_u.
   */
  addWeightedNorms(
    factors: number,
    size: number,
    offsets: number,
    weights: number,
    rows: number,
    sums: number,
  ): void;
  /**
   * Weights and targets of implicit data, each with eight zeros behind the `count` ratings: count + 16
   * float32.
   */
  weighRatings(
    values: number,
    count: number,
    alpha: number,
    base: number,
    targets: number,
    weights: number,
  ): void;
  /** Rows [from, to) of weight ΘᵀΘ, and those columns; multiples of 8. work: 192 * size bytes. */
  gramRows(
    theta: number,
    size: number,
    rows: number,
    from: number,
    to: number,
    weight: number,
    matrix: number,
    work: number,
  ): void;
  /**
   * Half an iteration of implicit ALS: updateRows with targets, weights, the Gram matrix and a shift for each
   * row.
   */
  updateRowsImplicit(
    theta: number,
    size: number,
    rank: number,
    gram: number,
    offsets: number,
    indices: number,
    targets: number,
    weights: number,
    rows: number,
    shifts: number,
    output: number,
    previous: number,
    cgBelow: number,
    steps: number,
    settles: 0 | 1,
    nonnegative: 0 | 1,
    anchored: 0 | 1,
    workspace: number,
    workspaceBytes: number,
    objective: number,
    far: 0 | 1,
  ): number;
  /** accumulateRow with targets and weights. */
  accumulateImplicit(
    theta: number,
    size: number,
    indices: number,
    targets: number,
    weights: number,
    count: number,
    accumulate: 0 | 1,
    workspace: number,
  ): void;
  /**
   * Solves the accumulated row by CG (0), Cholesky (1) or with x >= 0 (2); 0 when the solution is not finite.
   */
  solveAccumulatedImplicit(
    size: number,
    rank: number,
    gram: number,
    shift: number,
    anchored: 0 | 1,
    output: number,
    previous: number,
    method: 0 | 1 | 2,
    steps: number,
    workspace: number,
  ): 0 | 1;
  /** Adds Σ w (p - s)² + base p (1 - 2 s) to the float64 at `sum`. */
  addImplicitErrors(
    rowFactors: number,
    columnFactors: number,
    size: number,
    offsets: number,
    indices: number,
    targets: number,
    weights: number,
    base: number,
    rows: number,
    sum: number,
  ): void;
  /** Adds Σ shift_u ‖x_u‖² to the float64 at `sum`. */
  addShiftedNorms(factors: number, size: number, shifts: number, rows: number, sum: number): void;
  predictPairs(
    rowFactors: number,
    columnFactors: number,
    size: number,
    rows: number,
    columns: number,
    count: number,
    values: number,
  ): void;
  /** SGD over the ratings of `rows` rows, row by row. steps: 8 vectors, see cpu/assembly/sgd/sgd.ts. */
  stepRows(
    rowFactors: number,
    columnFactors: number,
    size: number,
    offsets: number,
    indices: number,
    values: number,
    rows: number,
    steps: number,
  ): void;
  /** SGD over `count` ratings in their order. rows, columns: Uint32[count]. */
  stepRatings(
    rowFactors: number,
    columnFactors: number,
    size: number,
    rows: number,
    columns: number,
    values: number,
    count: number,
    steps: number,
  ): void;
  /**
   * stepRows with AdaGrad. Sums: one float32 a row and a column. steps: 6 vectors, see
   * cpu/assembly/sgd-adaptive.ts.
   */
  adaptRows(
    rowFactors: number,
    columnFactors: number,
    size: number,
    rowSums: number,
    columnSums: number,
    offsets: number,
    indices: number,
    values: number,
    rows: number,
    steps: number,
  ): void;
  /** stepRatings with AdaGrad. */
  adaptRatings(
    rowFactors: number,
    columnFactors: number,
    size: number,
    rowSums: number,
    columnSums: number,
    rows: number,
    columns: number,
    values: number,
    count: number,
    steps: number,
  ): void;
}

/**
 * The kernels for a shared memory of at most 65,536 pages. Each thread has an instance; instances share only
 * the memory.
 */
export function loadKernels(memory: WebAssembly.Memory, compiled: WebAssembly.Module): Kernels {
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Kernels;
}
