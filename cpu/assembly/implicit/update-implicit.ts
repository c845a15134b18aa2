/**
 * One half-iteration of implicit ALS: for each row u, (G + Σ w θθᵀ + shift_u I) x_u = Σ t θ is solved before
 * the next row starts. G is the Gram matrix of all θ, computed once for all rows. A row without ratings
 * becomes 0. The workspace has the layout of update.ts.
 */
import { factor } from '../solve/cholesky';
import { packs, solveFormed } from '../solve/conjugate-gradient';
import { addDiagonal, definiteShift } from '../solve/diagonal';
import { CG, CHOLESKY, solveExactly } from '../solve/exact';
import { canForm, gatheredOf, objectiveOf, panelCapacity, vectorsOf } from '../solve/workspace';
import { VECTOR } from '../simd';
import { allFinite, clear, copy, dot } from '../vectors';
import { addShift, solveImplicit } from './conjugate-gradient';
import { multiplyGram } from './multiply-gram';
import { addGram, addWeightedEquations } from './weighted-equations';

/** Adds ratings of one long row to the workspace's A and b. */
export function accumulateImplicit(
  theta: usize,
  size: usize,
  indices: usize,
  targets: usize,
  weights: usize,
  count: i32,
  accumulate: bool,
  workspace: usize,
): void {
  addWeightedEquations(
    theta,
    size,
    indices,
    targets,
    weights,
    count,
    workspace,
    vectorsOf(workspace, size),
    gatheredOf(workspace, size),
    accumulate,
  );
}

/**
 * Returns the shift that Cholesky adds to the diagonal of the workspace's A: `shift`, or A's rounding error
 * if A is not positive definite in float32 with `shift` alone, as happens with weights of millions. If A's
 * rounding error is above `shift`, a copy of A is factored with `shift` to find out.
 */
function exactShift(size: usize, rank: i32, shift: f32, workspace: usize): f32 {
  const least = definiteShift(workspace, size, rank, shift);
  if (least == shift) return shift;
  const trial = gatheredOf(workspace, size);
  memory.copy(trial, workspace, (size * size) >> 2);
  addDiagonal(trial, size, rank, shift);
  return factor(trial, size, vectorsOf(workspace, size) + size) ? shift : least;
}

/**
 * Solves the row whose A (without G and shift) and b are in the workspace. Returns true if x is finite.
 * `method`: see solve/exact.ts. `anchored`: adds (G + shift) times the row's previous factors to b.
 */
export function solveAccumulatedImplicit(
  size: usize,
  rank: i32,
  gram: usize,
  shift: f32,
  anchored: bool,
  output: usize,
  previous: usize,
  method: i32,
  steps: i32,
  workspace: usize,
): bool {
  const bias = vectorsOf(workspace, size);
  addGram(workspace, gram, size);
  if (method == CHOLESKY) shift = exactShift(size, rank, shift, workspace);
  if (anchored) {
    const own = bias + size;
    multiplyGram(gram, size, previous, own);
    addShift(own, 1, shift, previous, size);
    for (let j: usize = 0; j < size; j += VECTOR)
      v128.store(bias + j, f32x4.add(v128.load(bias + j), v128.load(own + j)));
  }
  addDiagonal(workspace, size, rank, shift);
  const objective = objectiveOf(workspace, size);
  if (method != CG) {
    const room = gatheredOf(workspace, size);
    const solved = solveExactly(method, workspace, size, rank, bias, output, previous, room, objective);
    return solved && allFinite(output, size);
  }
  if (output != previous) copy(output, previous, size);
  solveFormed(workspace, size, bias, output, steps, bias + size, objective);
  return allFinite(output, size);
}

/**
 * True if forming A costs less than the passes of CG over the row's panels; formingIsCheaper explains the
 * units. Passes over G and over A cost the same, so neither is counted.
 */
@inline
function formingPays(count: i32, kept: i32, stride: i32, steps: i32): bool {
  return count * stride < (steps + 1) * (4 * kept + 8 * (count - kept));
}

/**
 * Updates `rows` consecutive rows. Returns the first row without a finite solution, or -1.
 *
 * - `settles`, `exactMethod`, `objective` and `far`: see updateRows.
 * - `targets` and `weights`: see weighRatings.
 * - `shifts`: Float32[rows]; `gram`: G, stride x stride.
 * - `anchored`: see solveAccumulatedImplicit; rows without ratings then keep their factors.
 */
export function updateRowsImplicit(
  theta: usize,
  size: usize,
  rank: i32,
  gram: usize,
  offsets: usize,
  indices: usize,
  targets: usize,
  weights: usize,
  rows: i32,
  shifts: usize,
  output: usize,
  previous: usize,
  cgBelow: i32,
  steps: i32,
  settles: bool,
  exactMethod: i32,
  anchored: bool,
  workspace: usize,
  workspaceBytes: usize,
  objective: usize,
  far: bool,
): i32 {
  let badRow = -1;
  let sum = load<f64>(objective);
  const origin = load<i32>(offsets);
  const vectors = vectorsOf(workspace, size);
  const gathered = gatheredOf(workspace, size);
  const formed = canForm(size);
  for (let row = 0; row < rows; row++) {
    const start = load<i32>(offsets);
    const count = load<i32>(offsets, 4) - start;
    const at = (<usize>(start - origin)) << 2;
    const shift = load<f32>(shifts);
    const method = exactMethod != CHOLESKY || count >= cgBelow ? exactMethod : CG;
    const kept = panelCapacity(workspaceBytes, size, packs(indices + at, size, count, steps, settles));
    let solved = true;
    let settled = false;
    if (count == 0) {
      if (!anchored) clear(output, size);
      else if (output != previous) copy(output, previous, size);
    } else {
      if (method == CG && (!formed || !formingPays(count, min(kept, count), <i32>(size >> 2), steps))) {
        if (output != previous) copy(output, previous, size);
        settled =
          solveImplicit(
            theta,
            size,
            gram,
            indices + at,
            targets + at,
            weights + at,
            count,
            kept,
            shift,
            anchored,
            output,
            steps,
            settles,
            gathered,
            vectors,
            objectiveOf(workspace, size),
            far,
          ) || !settles || !formed;
      }
      if (settled) {
        solved = allFinite(output, size);
      } else {
        accumulateImplicit(theta, size, indices + at, targets + at, weights + at, count, false, workspace);
        solved = solveAccumulatedImplicit(
          size,
          rank,
          gram,
          shift,
          anchored,
          output,
          previous,
          method == CG && settles ? CHOLESKY : method,
          steps,
          workspace,
        );
      }
      sum += load<f64>(objectiveOf(workspace, size));
    }
    if (!solved && badRow < 0) badRow = row;
    offsets += 4;
    shifts += 4;
    output += size;
    previous += size;
  }
  store<f64>(objective, sum);
  return badRow;
}
