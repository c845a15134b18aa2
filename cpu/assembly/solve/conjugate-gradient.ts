/**
 * Conjugate gradients for A x = b of one row (cuMF_ALS, Algorithm 1), starting from the row's previous x:
 *
 *     r = b - A x;  p = r;  ρ = rᵀr
 *     repeat f_s times:   q = A p;  α = ρ / pᵀq;  x += α p;  r = r - α q;  ρ' = rᵀr;  p = r + (ρ'/ρ) p;  ρ = ρ'
 *
 * (Line 5 of the paper's algorithm lacks the α.) The loop ends early when r = 0, where the next α would be
 * 0/0, and when float32 cannot improve x: when ‖r‖ is below 1e-5 of ‖b‖, 1e-6 of its first value, or 1e-15,
 * where pᵀq could underflow. A matrix-free solve does not compute b, only xᵀb = Σ r_uv θ_vᵀx, and uses (xᵀb)²
 * / xᵀx, which is at most ‖b‖², in place of ‖b‖².
 *
 * A bias of the row is eliminated first (steps.ts): x solves (A - s sᵀ / c) x = b - (t / c) s.
 *
 * The last step needs no residual, only pᵀq, which is half the work of q.
 *
 * The objective xᵀA x - 2 bᵀx, which x minimizes, is cheap: it starts at -xᵀ(b + r), and each step lowers it
 * by α ρ.
 *
 * A is applied either as a formed matrix whose upper triangle is valid, or matrix-free through the row's
 * panels, which are gathered once and used by all steps. With the weight w and the target t of each implicit
 * rating, and G, the Gram matrix of all θ, which is the same for all rows and stays in the cache:
 *
 *     A p = G p + shift p + Σ w θ (θᵀp)      b = Σ t θ
 *
 * An anchored row adds (G + shift) x to b, where x is the row's previous factors: ratings then move the row
 * away from x only as far as G and the shift allow. The first residual is Σ (t - w θᵀx) θ.
 */
import { VECTOR, multiplyAdd, sumLanes } from '../simd';
import { clear, dot, scale } from '../vectors';
import { addGatheredCurvature, addPanelsCurvature, gatherAndMultiply, multiplyPanels } from './panel-passes';
import { RowProblem, gatheredOf, panelBytes, placeVectors, sumsOf, vectorsOf } from './problem';
import { beginSteps, endResidual, isConverged, isSettled, takeLastStep, takeStep } from './steps';
import { multiplyGram, multiplySymmetric, symmetricCurvature } from './symmetric';

/** y = a (G + shift I) p, where a is 1 or -1. */
export function regularize(row: RowProblem, a: f32, p: usize, y: usize): void {
  const size = row.size;
  if (!row.gram) {
    scale(y, a * row.shift, p, size);
    return;
  }
  multiplyGram(row.gram, size, p, y);
  const factor = f32x4.splat(a);
  const diagonal = f32x4.splat(row.shift);
  for (let j: usize = 0; j < size; j += VECTOR)
    v128.store(y + j, f32x4.mul(factor, multiplyAdd(diagonal, v128.load(p + j), v128.load(y + j))));
}

/** Prepares the pass that computes the residual of x: r = -(G + shift I) x, s = 0 and the lanes 0. */
@inline
export function startResidual(row: RowProblem): void {
  if (row.anchored) clear(row.r, row.size);
  else regularize(row, -1, row.x, row.r);
  if (row.sums) clear(row.sums, row.size);
  row.lanes = f32x4.splat(0);
}

/**
 * A row's panels are packed only if they need at least this number of bytes in float32: half of a 1 MiB
 * second-level cache. The other half is for rows of Θ. `packs` has further conditions.
 */
const PACKED_FROM: usize = 1 << 19;

/**
 * Decides whether CG reads θ in 16 bits (packed-panels.ts). It does for long rows, if the steps are at most a
 * quarter of the features: after so few steps the residual is far larger than the error of packing. The
 * rounding averages out over different columns, so rows with fewer different columns than twice the features
 * stay in float32.
 */
export function packs(row: RowProblem): bool {
  const size = row.size;
  const count = row.count;
  if (row.settles || (<usize>row.steps) << 4 > size || <usize>count * size < PACKED_FROM) return false;
  const least = <i32>(size >> 1);
  const indices = row.indices;
  let differing = 1;
  for (let at = indices + 4, end = indices + ((<usize>count) << 2); at < end && differing < least; at += 4)
    differing += i32(load<i32>(at) != load<i32>(at - 4));
  return differing >= least;
}

/** q = (ΘᵀWΘ + G + shift I) p over the row's panels and the ratings that are not kept. */
@inline
function multiplyRatings(row: RowProblem, backward: bool): void {
  regularize(row, 1, row.p, row.q);
  multiplyPanels(row, backward);
  if (row.kept < row.count)
    gatherAndMultiply(row, row.kept, row.count - row.kept, 0, row.p, row.q, 0, false);
}

/** pᵀ(ΘᵀWΘ + G + shift I) p */
@inline
function ratingsCurvature(row: RowProblem, backward: bool): f32 {
  const size = row.size;
  row.lanes = f32x4.splat(0);
  addPanelsCurvature(row, backward);
  if (row.kept < row.count) addGatheredCurvature(row, row.kept, row.count - row.kept);
  let curvature = row.shift * dot(row.p, row.p, size);
  if (row.gram) curvature = symmetricCurvature(row.gram, size, row.p) + curvature;
  return curvature + sumLanes(row.lanes);
}

/**
 * Runs the steps of CG from the residual of x. `formed`: A is the workspace's matrix, with its shift.
 * `biasSquares`: ‖b‖², or a lower bound of it. Returns true if the last residual is known to be settled: at
 * most 1e-5 of ‖b‖. With `settles` every step computes its residual; without it, the last step does not.
 */
function iterate(row: RowProblem, formed: bool, settles: bool, biasSquares: f32): bool {
  let rho = beginSteps(row, biasSquares);
  if (isConverged(row, rho)) return isSettled(rho, biasSquares);
  const full = settles ? row.steps : row.steps - 1;
  for (let step = 0; step < full; step++) {
    if (formed) multiplySymmetric(row.workspace, row.size, row.p, row.q);
    else multiplyRatings(row, (step & 1) == 0);
    rho = takeStep(row);
    if (rho < 0) return false;
    if (isConverged(row, rho)) return isSettled(rho, biasSquares);
  }
  if (settles || row.steps == 0) return false;
  const curvature = formed
    ? symmetricCurvature(row.workspace, row.size, row.p)
    : ratingsCurvature(row, (row.steps & 1) == 1);
  takeLastStep(row, curvature);
  return false;
}

/** Solves A x = b for a formed A, of which the upper triangle is read. A bias has been eliminated. */
export function solveFormed(problem: usize): void {
  const row = changetype<RowProblem>(problem);
  placeVectors(row);
  row.sums = 0;
  const size = row.size;
  const x = row.x;
  const r = row.r;
  const b = vectorsOf(row.workspace, size);
  multiplySymmetric(row.workspace, size, x, r);
  for (let j: usize = 0; j < size; j += VECTOR)
    v128.store(r + j, f32x4.sub(v128.load(b + j), v128.load(r + j)));
  row.objective = -(<f64>dot(b, x, size) + <f64>dot(r, x, size));
  iterate(row, true, false, dot(b, b, size));
}

/**
 * Solves (ΘᵀWΘ + G + shift I) x = Σ t θ, matrix-free, over the ratings of a row, which has at least one.
 * `kept`: the number of ratings whose panels fit the workspace, a positive multiple of 8.
 *
 * Returns true if the last residual is known to be at most 1e-5 of ‖b‖. ‖b‖ is underestimated unless x starts
 * near 0 or near the solution, and then false is returned more often than necessary.
 */
export function solveMatrixFree(problem: usize, kept: i32): bool {
  const row = changetype<RowProblem>(problem);
  const size = row.size;
  const count = row.count;
  placeVectors(row);
  row.sums = row.bias ? sumsOf(row.workspace, size) : 0;
  row.packed = packs(row);
  row.panels = gatheredOf(row.workspace, size);
  row.spare = row.panels + panelBytes(size, kept, row.packed != 0);
  row.kept = min(kept, count);
  startResidual(row);
  gatherAndMultiply(row, 0, row.kept, row.panels, row.x, row.r, row.sums, true);
  if (kept < count) gatherAndMultiply(row, kept, count - kept, 0, row.x, row.r, row.sums, true);
  return iterate(row, false, row.settles != 0, endResidual(row, sumLanes(row.lanes)));
}
