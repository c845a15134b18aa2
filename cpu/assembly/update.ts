/**
 * One fused half-iteration: for each row u of a chunk, A_u x_u = b_u is formed and solved before the next row
 * starts (cuMF, eq. 2). A row's shift is added once to the diagonal of A: λ n_u, or another regularization.
 * The method for a row depends only on its own ratings (their number n, the number of different columns, and
 * with `settles` the residual after CG) and on its shifts. So the result does not depend on the cut of rows
 * into chunks or tasks:
 *
 *     n = 0                    x = 0
 *     non-negative             the minimum over x >= 0 of the formed A: solve/nonnegative.ts
 *     n < cgBelow              CG: matrix-free, or on the formed A where that is cheaper
 *     else, n below f          Cholesky of the dual n x n system; with biases, see LEAST_DUAL_BIAS
 *     else                     Cholesky of A
 *
 * Every solver also computes a row's objective, xᵀ(A + shift I) x - 2 bᵀx, with biases including β, from one
 * or two more sums. With Σ r² it is the row's part of the loss, so that the loss needs no pass over the
 * ratings.
 *
 * With biases, a row's own bias is solved together with x, and is not restricted to be non-negative: see
 * solve/eliminate-bias.ts and solve/dual.ts. μ and the fixed side's biases are already subtracted from the
 * ratings.
 */
import { addNormalEquations } from './normal-equations';
import { dualIsCheaper, formingIsCheaper } from './solve/cheaper';
import { packs, solveFormed, solveMatrixFree } from './solve/conjugate-gradient';
import { addDiagonal, definiteShift } from './solve/diagonal';
import { solveDual } from './solve/dual';
import { biasOf, eliminateBias } from './solve/eliminate-bias';
import { CG, CHOLESKY, solveExactly } from './solve/exact';
import { lower } from './solve/steps';
import { canForm, gatheredOf, objectiveOf, panelCapacity, sumsOf, vectorsOf } from './solve/workspace';
import { allFinite, clear, copy, dot, sumOf } from './vectors';

/**
 * The dual system is used with biases only if the bias's own regularization divided by n is at least this;
 * below, it is too badly conditioned.
 */
const LEAST_DUAL_BIAS: f32 = 1e-3;

/**
 * Solves the row whose A (without its shift), b = Σ r_uv θ_v and, with a bias, s = Σ θ_v are in the
 * workspace. Returns true if x is finite.
 *
 * - `method`: see solve/exact.ts.
 * - `weight` and `total`: c and t of the row's bias, see solve/eliminate-bias.ts; `weight` is 0 without a
 *   bias.
 * - `bias`: address of β.
 */
export function solveAccumulated(
  size: usize,
  rank: i32,
  shift: f32,
  weight: f32,
  total: f32,
  bias: usize,
  output: usize,
  previous: usize,
  method: i32,
  steps: i32,
  workspace: usize,
): bool {
  const b = vectorsOf(workspace, size);
  const sums = sumsOf(workspace, size);
  const objective = objectiveOf(workspace, size);
  if (method == CHOLESKY) shift = definiteShift(workspace, size, rank, shift);
  if (weight > 0) eliminateBias(workspace, size, b, sums, weight, total);
  addDiagonal(workspace, size, rank, shift);
  if (method != CG) {
    const room = gatheredOf(workspace, size);
    if (!solveExactly(method, workspace, size, rank, b, output, previous, room, objective)) return false;
  } else {
    if (output != previous) copy(output, previous, size);
    solveFormed(workspace, size, b, output, steps, b + size, objective);
  }
  if (weight > 0) {
    store<f32>(bias, biasOf(size, sums, weight, total, output));
    lower(objective, total, weight);
  }
  return allFinite(output, size);
}

/**
 * Adds some ratings of one long row to the workspace's A and b and, if `biased`, to s. See addNormalEquations
 * for `accumulate` and for the number of ratings of a call.
 */
export function accumulateRow(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  count: i32,
  biased: bool,
  accumulate: bool,
  workspace: usize,
): void {
  const b = vectorsOf(workspace, size);
  const sums: usize = biased ? sumsOf(workspace, size) : 0;
  addNormalEquations(
    theta,
    size,
    indices,
    values,
    count,
    workspace,
    b,
    sums,
    gatheredOf(workspace, size),
    accumulate,
  );
}

/**
 * Solves one row. `bias`: address of its bias, and `ownShift` the bias's regularization; both 0 without a
 * bias.
 */
function updateRow(
  theta: usize,
  size: usize,
  rank: i32,
  indices: usize,
  values: usize,
  count: i32,
  shift: f32,
  ownShift: f32,
  bias: usize,
  output: usize,
  previous: usize,
  cgBelow: i32,
  steps: i32,
  settles: bool,
  exactMethod: i32,
  workspace: usize,
  workspaceBytes: usize,
  far: bool,
): bool {
  const vectors = vectorsOf(workspace, size);
  const gathered = gatheredOf(workspace, size);
  const objective = objectiveOf(workspace, size);
  const exact = exactMethod != CHOLESKY || count >= cgBelow;
  const n = <f32>count;
  if (exact && exactMethod == CHOLESKY && dualIsCheaper(count, size) && (!bias || (shift > 0 && ownShift >= LEAST_DUAL_BIAS * n))) {
    const ratio: f32 = bias ? shift / ownShift : 0;
    const definite = solveDual(
      theta,
      size,
      indices,
      values,
      count,
      shift,
      ratio,
      bias,
      output,
      workspace,
      gathered,
      vectors,
      objective,
    );
    return definite && allFinite(output, size);
  }
  const weight: f32 = bias ? n + ownShift : 0;
  const total: f32 = bias ? <f32>sumOf(values, count) : 0;
  if (!exact) {
    const kept = panelCapacity(workspaceBytes, size, packs(indices, size, count, steps, settles));
    const formed = canForm(size);
    if (!formed || !formingIsCheaper(count, min(kept, count), <i32>(size >> 2), steps)) {
      if (output != previous) copy(output, previous, size);
      const sums: usize = bias ? sumsOf(workspace, size) : 0;
      const settled = solveMatrixFree(
        theta,
        size,
        indices,
        values,
        count,
        kept,
        shift,
        sums,
        weight,
        total,
        output,
        steps,
        settles,
        gathered,
        vectors,
        objective,
        far,
      );
      if (settled || !settles || !formed) {
        if (bias) {
          store<f32>(bias, biasOf(size, sums, weight, total, output));
          lower(objective, total, weight);
        }
        return allFinite(output, size);
      }
    }
  }
  accumulateRow(theta, size, indices, values, count, bias != 0, false, workspace);
  return solveAccumulated(
    size,
    rank,
    shift,
    weight,
    total,
    bias,
    output,
    previous,
    exact || settles ? exactMethod : CG,
    steps,
    workspace,
  );
}

/**
 * Updates `rows` consecutive rows. Returns the first row without a finite solution, or -1.
 *
 * - `offsets`: Int32[rows + 1] of absolute positions; `indices` and `values` hold the ratings from offsets[0]
 *   on.
 * - `shifts`: Float32[rows]; `ownShifts` and `biases` likewise for the rows' biases, or 0.
 * - `output` and `previous`: addresses of the first row's new and old factors.
 * - `settles`: true if rows for which CG leaves a larger residual than an exact solve would are solved
 *   exactly, if A can be formed.
 * - `exactMethod`: the exact solver, see solve/exact.ts; any but Cholesky is used for all rows.
 * - `objective`: a float64 to which the rows' objectives are added, in order.
 * - `far`: see gatherAndMultiply.
 */
export function updateRows(
  theta: usize,
  size: usize,
  rank: i32,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  shifts: usize,
  ownShifts: usize,
  biases: usize,
  output: usize,
  previous: usize,
  cgBelow: i32,
  steps: i32,
  settles: bool,
  exactMethod: i32,
  workspace: usize,
  workspaceBytes: usize,
  objective: usize,
  far: bool,
): i32 {
  let badRow = -1;
  let sum = load<f64>(objective);
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    const start = load<i32>(offsets);
    const count = load<i32>(offsets, 4) - start;
    const at = (<usize>(start - origin)) << 2;
    if (count == 0) {
      clear(output, size);
      if (biases) store<f32>(biases, 0);
    } else {
      const solved = updateRow(
        theta,
        size,
        rank,
        indices + at,
        values + at,
        count,
        load<f32>(shifts),
        biases ? load<f32>(ownShifts) : 0,
        biases,
        output,
        previous,
        cgBelow,
        steps,
        settles,
        exactMethod,
        workspace,
        workspaceBytes,
        far,
      );
      if (!solved && badRow < 0) badRow = row;
      sum += load<f64>(objectiveOf(workspace, size));
    }
    offsets += 4;
    shifts += 4;
    if (biases) {
      ownShifts += 4;
      biases += 4;
    }
    output += size;
    previous += size;
  }
  store<f64>(objective, sum);
  return badRow;
}
