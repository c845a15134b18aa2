/**
 * One fused half-iteration: for each row u of a chunk, A_u x_u = b_u is formed and solved before the next row begins
 * (cuMF, eq. 2, with λ n_u once on the diagonal). The method for a row depends on its own length alone, so that
 * the result does not depend on the cut of rows into chunks or tasks:
 *
 *     n = 0                    x = 0
 *     n < cgBelow              CG: matrix-free, or on the formed A where that is cheaper
 *     else, n below f          Cholesky of the dual n x n system
 *     else                     Cholesky of A
 *
 * Workspace of one thread, `size` = bytes of a factor row:
 *
 *     matrix     size² / 4              A, or the dual's matrix
 *     vectors    VECTORS * size + 128   b, and the solvers' work
 *     gathered   the rest               a tile and a part of A, the transposed Θ of the dual, or all panels of the row
 */
import { addDiagonal, addNormalEquations } from './normal-equations';
import { solveCholesky } from './solve/cholesky';
import { solveFormed, solveMatrixFree } from './solve/conjugate-gradient';
import { solveDual } from './solve/dual';
import { PANEL } from './solve/panels';
import { allFinite, clear, copy } from './vectors';

const VECTORS: usize = 5;

@inline
export function vectorsOf(workspace: usize, size: usize): usize {
  return workspace + ((size * size) >> 2);
}

@inline
export function gatheredOf(workspace: usize, size: usize): usize {
  return vectorsOf(workspace, size) + VECTORS * size + 128;
}

/** Number of ratings whose panels can be kept, besides two panels for the others. */
@inline
export function panelCapacity(workspaceBytes: usize, size: usize): i32 {
  return <i32>((workspaceBytes - gatheredOf(0, size)) / (size << 3) - 2) * PANEL;
}

/**
 * Compares the two ways of CG by their measured cost, in units of one register-block step for a rating and a feature: forming A
 * costs `stride` of them a rating, a pass over it 4 ratings' worth; a matrix-free pass 4 a kept rating and 8 a rating gathered anew.
 */
@inline
function formingIsCheaper(count: i32, kept: i32, stride: i32, steps: i32): bool {
  const passes = steps + 1;
  return (count + 4 * passes) * stride < passes * (4 * kept + 8 * (count - kept));
}

/** True for rows below f ratings in whole register blocks. Padding is less than one block, so these have fewer ratings than features. */
@inline
function dualIsCheaper(count: i32, size: usize): bool {
  return (((<usize>count << 2) + 31) & ~(<usize>31)) < size;
}

/** Solves the row whose A (without λ) and b lie in the workspace; true when x is a finite solution. */
export function solveAccumulated(
  size: usize,
  rank: i32,
  shift: f32,
  output: usize,
  previous: usize,
  exact: bool,
  steps: i32,
  workspace: usize,
): bool {
  const bias = vectorsOf(workspace, size);
  addDiagonal(workspace, size, rank, shift);
  if (exact) return solveCholesky(workspace, size, bias, output, bias + size) && allFinite(output, size);
  if (output != previous) copy(output, previous, size);
  solveFormed(workspace, size, bias, output, steps, bias + size);
  return allFinite(output, size);
}

/** Adds ratings of one long row to the workspace's A and b; see addNormalEquations about the sizes of the calls. */
export function accumulateRow(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  count: i32,
  accumulate: bool,
  workspace: usize,
): void {
  const bias = vectorsOf(workspace, size);
  addNormalEquations(theta, size, indices, values, count, workspace, bias, gatheredOf(workspace, size), accumulate);
}

function updateRow(
  theta: usize,
  size: usize,
  rank: i32,
  indices: usize,
  values: usize,
  count: i32,
  lambda: f64,
  output: usize,
  previous: usize,
  cgBelow: i32,
  steps: i32,
  workspace: usize,
  workspaceBytes: usize,
): bool {
  if (count == 0) {
    clear(output, size);
    return true;
  }
  const shift = <f32>(lambda * <f64>count);
  const vectors = vectorsOf(workspace, size);
  const gathered = gatheredOf(workspace, size);
  const exact = count >= cgBelow;
  if (exact && dualIsCheaper(count, size)) {
    const definite = solveDual(theta, size, indices, values, count, shift, output, workspace, gathered, vectors);
    return definite && allFinite(output, size);
  }
  if (!exact) {
    const kept = panelCapacity(workspaceBytes, size);
    if (!formingIsCheaper(count, min(kept, count), <i32>(size >> 2), steps)) {
      if (output != previous) copy(output, previous, size);
      solveMatrixFree(theta, size, indices, values, count, kept, shift, output, steps, gathered, vectors);
      return allFinite(output, size);
    }
  }
  accumulateRow(theta, size, indices, values, count, false, workspace);
  return solveAccumulated(size, rank, shift, output, previous, exact, steps, workspace);
}

/**
 * Updates `rows` consecutive rows. `offsets`: Int32[rows + 1] of absolute positions; `indices` and `values` hold the ratings
 * from offsets[0] on. `output` and `previous`: the first row's factors. Gives the first row without a finite solution, or -1.
 */
export function updateRows(
  theta: usize,
  size: usize,
  rank: i32,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  lambda: f64,
  output: usize,
  previous: usize,
  cgBelow: i32,
  steps: i32,
  workspace: usize,
  workspaceBytes: usize,
): i32 {
  let badRow = -1;
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    const start = load<i32>(offsets);
    const count = load<i32>(offsets, 4) - start;
    const at = (<usize>(start - origin)) << 2;
    const solved = updateRow(
      theta,
      size,
      rank,
      indices + at,
      values + at,
      count,
      lambda,
      output,
      previous,
      cgBelow,
      steps,
      workspace,
      workspaceBytes,
    );
    if (!solved && badRow < 0) badRow = row;
    offsets += 4;
    output += size;
    previous += size;
  }
  return badRow;
}
