/**
 * One fused half-iteration: for each row u of a chunk, A_u x_u = b_u is formed and solved before the next row
 * starts (cuMF, eq. 2), for explicit ratings and for implicit ones, (G + Σ w θθᵀ + shift_u I) x_u = Σ t θ. A
 * row's shift is added once to the diagonal of A: λ n_u, or another regularization. The method for a row
 * depends only on its own ratings (their number n, the number of different columns, and with `settles` the
 * residual after CG) and on its shifts. So the result does not depend on the cut of rows into chunks or tasks:
 *
 *     n = 0                    x = 0, or the prior
 *     non-negative             the minimum over x >= 0 of the formed A: solve/nonnegative.ts
 *     n < cgBelow              CG: matrix-free, or on the formed A where that is cheaper
 *     else, n below f          explicit: Cholesky of the dual n x n system; with biases, see LEAST_DUAL_BIAS
 *     else                     Cholesky of A
 *
 * A prior a adds shift a to b: the shift then draws x to a. An anchored row adds (G + shift) a.
 *
 * Every solver also computes a row's objective, xᵀ(A + shift I) x - 2 bᵀx, with biases including β, and with a
 * prior also shift ‖a‖², from one or two more sums. With Σ r² it is the row's part of the loss, so that the loss
 * needs no pass over the ratings. The objective of an anchored row is not complete.
 *
 * With biases, a row's own bias is solved together with x, and is not restricted to be non-negative: see
 * solve/steps.ts and solve/dual.ts. μ and the fixed side's biases are already subtracted from the ratings.
 */
import { accumulateRow } from './normal-equations';
import { VECTOR, WORD } from './simd';
import { addDiagonal, definiteShift, factor, solveCholesky } from './solve/cholesky';
import { drawToPrior, packs, solveFormed, solveMatrixFree, symmetricCurvature } from './solve/conjugate-gradient';
import { dualIsCheaper, solveDual } from './solve/dual';
import { solveNonnegative } from './solve/nonnegative';
import { hideNext, showNext } from './solve/panel-passes';
import { RowProblem, canForm, gatheredOf, panelCapacity, sumsOf, vectorsOf } from './solve/problem';
import { eliminateBias, finishRow } from './solve/steps';
import { addMultiple, allFinite, clear, copy, dot, sumOf } from './vectors';

/** CG, and the exact solvers of a formed A. scripts/build-wasm.ts gives tasks their numbers. */
export enum Method {
  cg,
  cholesky,
  nonnegative,
}

/**
 * The dual system is used with biases only if the bias's own regularization divided by n is at least this;
 * below, it is too badly conditioned.
 */
const LEAST_DUAL_BIAS: f32 = 1e-3;

/**
 * Decides whether CG first forms A, by measured costs. The unit is one register-block step for a rating and a
 * feature. Forming A costs `stride` for each rating, and a pass over A as much as 4 ratings. A matrix-free
 * pass costs 4 for a rating whose panel is kept, and 8 for a rating that is gathered again. With G, which
 * costs as much as A, each matrix-free pass reads it, too.
 */
@inline
function formingIsCheaper(count: i32, kept: i32, size: usize, steps: i32, gram: usize): bool {
  const passes = steps + 1;
  const matrix = gram ? 0 : 4 * passes;
  return (count + matrix) * <i32>(size >> 2) < passes * (4 * kept + 8 * (count - kept));
}

/**
 * Decides whether CG forms A for rows that are longer than a chunk, none of whose panels are kept. With
 * `settles` rows may need an exact solve, and so A where it can be formed.
 */
export function formsLongRows(size: usize, steps: i32, settles: bool): bool {
  return canForm(size) && (settles || <i32>(size >> 2) < 8 * (steps + 1));
}

/** A += G over the upper triangle of whole 8 x 8 blocks. */
function addGram(matrix: usize, gram: usize, size: usize): void {
  for (let i: usize = 0; i < size; i += WORD) {
    const row = (i >> 2) * size;
    for (let j = i & ~(<usize>31); j < size; j += VECTOR) {
      v128.store(matrix + row + j, f32x4.add(v128.load(matrix + row + j), v128.load(gram + row + j)));
    }
  }
}

/**
 * Returns the shift that Cholesky adds to A's diagonal: the row's, or A's rounding error if that is larger.
 * With weights of millions A may be positive definite with the row's shift even then: a copy of A is factored
 * to find out.
 */
function exactShift(row: RowProblem): f32 {
  const matrix = row.workspace;
  const size = row.size;
  const least = definiteShift(matrix, size, row.rank, row.shift);
  if (least == row.shift || !row.gram) return least;
  const trial = gatheredOf(matrix, size);
  memory.copy(trial, matrix, (size * size) >> 2);
  addDiagonal(trial, size, row.rank, row.shift);
  return factor<f32>(trial, size, vectorsOf(matrix, size) + size, 0) ? row.shift : least;
}

/**
 * Solves A x = b exactly; A is the workspace's, with its shift added. Stores the objective, -bᵀx. Returns
 * false if there is no solution, as when A is not positive definite, or if `method` is unknown.
 */
function solveExactly(row: RowProblem, method: i32): bool {
  const matrix = row.workspace;
  const size = row.size;
  const b = vectorsOf(matrix, size);
  if (method == Method.nonnegative) {
    const solved = solveNonnegative(matrix, size, row.rank, b, row.x, row.previous, gatheredOf(matrix, size));
    // On the features that are not 0, A x = b, so xᵀA x - 2 bᵀx = -bᵀx.
    row.objective = -(<f64>dot(b, row.x, size));
    return solved;
  }
  if (method != Method.cholesky || !solveCholesky(matrix, size, b, row.x, b + size)) return false;
  // y, the solution of Uᵀy = b, has overwritten b, and bᵀx = yᵀy.
  row.objective = -(<f64>dot(b, b, size));
  return true;
}

/**
 * Solves the row whose A (without G and its shift), b = Σ t θ_v and, with a bias, s = Σ θ_v are in the
 * workspace. The row's `weight` and `total` are known. Returns true if x is finite.
 */
export function solveAccumulated(problem: usize, method: i32): bool {
  const row = changetype<RowProblem>(problem);
  const size = row.size;
  const matrix = row.workspace;
  const b = vectorsOf(matrix, size);
  const sums = sumsOf(matrix, size);
  if (row.gram) addGram(matrix, row.gram, size);
  const shift = method == Method.cholesky ? exactShift(row) : row.shift;
  if (row.prior) {
    const own = b + size;
    row.shift = shift;
    drawToPrior(row, own);
    for (let j: usize = 0; j < size; j += VECTOR)
      v128.store(b + j, f32x4.add(v128.load(b + j), v128.load(own + j)));
  }
  if (row.bias) eliminateBias(row, matrix, b, sums);
  addDiagonal(matrix, size, row.rank, shift);
  if (method != Method.cg) {
    if (!solveExactly(row, method)) return false;
  } else {
    if (row.x != row.previous) copy(row.x, row.previous, size);
    solveFormed(problem);
  }
  finishRow(row, sums);
  return allFinite(row.x, size);
}

/**
 * Solves a row with at least one rating. `capacity`: the number of ratings whose panels fit the workspace in
 * float32. Returns true if x is finite.
 */
function solveRow(row: RowProblem, capacity: i32): bool {
  const problem = changetype<usize>(row);
  const size = row.size;
  const count = row.count;
  const n = <f32>count;
  const exact = row.exact != Method.cholesky || count >= row.cgBelow;
  if (exact && row.exact == Method.cholesky && !row.gram && dualIsCheaper(count, size)) {
    if (!row.bias || (row.shift > 0 && row.ownShift >= LEAST_DUAL_BIAS * n))
      return solveDual(problem) && allFinite(row.x, size);
  }
  row.weight = row.bias ? n + row.ownShift : 0;
  row.total = row.bias ? <f32>sumOf(row.values, count) + row.ownShift * row.priorBias : 0;
  if (!exact) {
    const formed = canForm(size);
    const kept = packs(row) ? panelCapacity(row.workspaceBytes, size, true) : capacity;
    if (!formed || !formingIsCheaper(count, min(kept, count), size, row.steps, row.gram)) {
      if (row.x != row.previous) copy(row.x, row.previous, size);
      const settled = solveMatrixFree(problem, kept);
      if (settled || !row.settles || !formed) {
        finishRow(row, row.sums);
        return allFinite(row.x, size);
      }
    }
  }
  accumulateRow(problem, row.bias != 0, false);
  return solveAccumulated(problem, exact || row.settles ? row.exact : Method.cg);
}

/**
 * Updates `rows` consecutive rows; on entry `problem` describes the first one. Returns the first row without a
 * finite solution, or -1. The rows' objectives are added to `objectives`, in order.
 *
 * - `offsets`: Int32[rows + 1] of absolute positions in the list of ratings, whose first is offsets[0].
 * - `shifts`: Float32[rows]; `ownShifts` and `biases` likewise for the rows' biases, or 0. With priors `biases`
 *   has their biases on entry.
 */
export function updateRows(
  problem: usize,
  rows: i32,
  offsets: usize,
  shifts: usize,
  ownShifts: usize,
  biases: usize,
): i32 {
  const row = changetype<RowProblem>(problem);
  const size = row.size;
  let badRow = -1;
  let sum = row.objectives;
  let start = load<i32>(offsets);
  row.bias = biases;
  const capacity = panelCapacity(row.workspaceBytes, size, false);
  for (let k = 0; k < rows; k++) {
    offsets += 4;
    const end = load<i32>(offsets);
    row.count = end - start;
    row.shift = load<f32>(shifts);
    if (biases) row.ownShift = load<f32>(ownShifts);
    row.priorBias = biases && row.prior ? load<f32>(row.bias) : 0;
    if (row.count == 0) {
      if (!row.prior) clear(row.x, size);
      else if (row.x != row.prior) copy(row.x, row.prior, size);
      if (biases) store<f32>(row.bias, row.priorBias);
      if (row.prior && row.gram && !row.anchored) sum += symmetricCurvature(row.gram, size, row.x);
    } else {
      if (row.weights) hideNext(row);
      if (!solveRow(row, capacity) && badRow < 0) badRow = k;
      if (row.weights) showNext(row);
      sum += row.objective;
    }
    const bytes = (<usize>(end - start)) << 2;
    start = end;
    row.indices += bytes;
    row.values += bytes;
    if (row.weights) row.weights += bytes;
    shifts += 4;
    if (biases) {
      ownShifts += 4;
      row.bias += 4;
    }
    row.x += size;
    row.previous += size;
    if (row.prior) row.prior += size;
  }
  row.objectives = sum;
  return badRow;
}
