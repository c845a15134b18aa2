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
 * With a prior a, b has one more term: shift a, or (G + shift) a for an anchored row.
 */
import { VECTOR, multiplyAdd, sumLanes, sumLanesOfFour } from '../simd';
import { addMultiple, clear, dot, scale } from '../vectors';
import { addGatheredCurvature, addPanelsCurvature, gatherAndMultiply, multiplyPanels } from './panel-passes';
import { RowProblem, gatheredOf, panelBytes, placeVectors, sumsOf, vectorsOf } from './problem';
import { beginSteps, endResidual, isConverged, isSettled, takeLastStep, takeStep } from './steps';

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

/** y = the prior's term of b. */
export function drawToPrior(row: RowProblem, y: usize): void {
  if (row.anchored) regularize(row, 1, row.prior, y);
  else scale(y, row.shift, row.prior, row.size);
}

/**
 * Prepares the pass that computes the residual of x: r = -(G + shift I) x, s = 0 and the lanes 0. With a prior
 * its term is added to r, and its product with x to the lanes; an anchored row, which starts at its prior,
 * needs no product.
 */
@inline
export function startResidual(row: RowProblem): void {
  regularize(row, -1, row.x, row.r);
  if (row.sums) clear(row.sums, row.size);
  row.lanes = f32x4.splat(0);
  if (row.prior) {
    drawToPrior(row, row.q);
    addMultiple(row.r, 1, row.q, row.size);
    if (!row.anchored) row.lanes = f32x4.replace_lane(row.lanes, 0, dot(row.q, row.x, row.size));
  }
}

/**
 * A row's panels are packed only if they need at least this number of bytes in float32: half of a 1 MiB
 * second-level cache. The other half is for rows of Θ. `packs` has further conditions.
 */
const PACKED_FROM: usize = 1 << 19;

/**
 * Decides whether CG reads θ in 16 bits (panels.ts). It does for long rows, if the steps are at most a
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

/** Products with a symmetric matrix: a row's A, of which the upper triangle is valid, or G, the Gram matrix. */

/**
 * y = A p for a symmetric A given by its upper triangle, four rows at a time: each element is read once and
 * used twice.
 */
export function multiplySymmetric(matrix: usize, size: usize, p: usize, y: usize): void {
  const zero = f32x4.splat(0);
  for (let j: usize = 0; j < size; j += VECTOR) v128.store(y + j, zero);
  for (let i: usize = 0; i < size; i += VECTOR) {
    const row0 = matrix + (i >> 2) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const part = p + i;
    const target = y + i;
    const factor0 = v128.load32_splat(part);
    const factor1 = v128.load32_splat(part, 4);
    const factor2 = v128.load32_splat(part, 8);
    const factor3 = v128.load32_splat(part, 12);
    let sum0 = zero;
    let sum1 = zero;
    let sum2 = zero;
    let sum3 = zero;
    for (let j: usize = VECTOR; j < size - i; j += VECTOR) {
      const other = v128.load(part + j);
      let below = v128.load(target + j);
      let elements = v128.load(row0 + j);
      below = multiplyAdd(factor0, elements, below);
      sum0 = multiplyAdd(elements, other, sum0);
      elements = v128.load(row1 + j);
      below = multiplyAdd(factor1, elements, below);
      sum1 = multiplyAdd(elements, other, sum1);
      elements = v128.load(row2 + j);
      below = multiplyAdd(factor2, elements, below);
      sum2 = multiplyAdd(elements, other, sum2);
      elements = v128.load(row3 + j);
      below = multiplyAdd(factor3, elements, below);
      sum3 = multiplyAdd(elements, other, sum3);
      v128.store(target + j, below);
    }
    // The 4 x 4 block on the diagonal: its upper triangle, in scalars.
    const p0 = load<f32>(part);
    const p1 = load<f32>(part, 4);
    const p2 = load<f32>(part, 8);
    const p3 = load<f32>(part, 12);
    const a01 = load<f32>(row0, 4);
    const a02 = load<f32>(row0, 8);
    const a03 = load<f32>(row0, 12);
    const a12 = load<f32>(row1, 8);
    const a13 = load<f32>(row1, 12);
    const a23 = load<f32>(row2, 12);
    const y0 = load<f32>(row0) * p0 + a01 * p1 + (a02 * p2 + a03 * p3);
    const y1 = a01 * p0 + load<f32>(row1, 4) * p1 + (a12 * p2 + a13 * p3);
    const y2 = a02 * p0 + a12 * p1 + (load<f32>(row2, 8) * p2 + a23 * p3);
    const y3 = a03 * p0 + a13 * p1 + (a23 * p2 + load<f32>(row3, 12) * p3);
    store<f32>(target, load<f32>(target) + sumLanes(sum0) + y0);
    store<f32>(target, load<f32>(target, 4) + sumLanes(sum1) + y1, 4);
    store<f32>(target, load<f32>(target, 8) + sumLanes(sum2) + y2, 8);
    store<f32>(target, load<f32>(target, 12) + sumLanes(sum3) + y3, 12);
  }
}

/**
 * y = G p, four rows of G at a time. An element right of the diagonal is read once and used twice, as in
 * multiplySymmetric. The 4 x 4 block on the diagonal is multiplied as a whole.
 */
export function multiplyGram(gram: usize, size: usize, p: usize, y: usize): void {
  clear(y, size);
  for (let i: usize = 0; i < size; i += VECTOR) {
    const row0 = gram + (i >> 2) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const part = p + i;
    const target = y + i;
    const factor0 = v128.load32_splat(part);
    const factor1 = v128.load32_splat(part, 4);
    const factor2 = v128.load32_splat(part, 8);
    const factor3 = v128.load32_splat(part, 12);
    let sum0 = f32x4.splat(0);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    for (let j: usize = VECTOR; j < size - i; j += VECTOR) {
      const other = v128.load(part + j);
      let elements = v128.load(row0 + j);
      let first = multiplyAdd(factor0, elements, v128.load(target + j));
      sum0 = multiplyAdd(elements, other, sum0);
      elements = v128.load(row1 + j);
      let second = f32x4.mul(factor1, elements);
      sum1 = multiplyAdd(elements, other, sum1);
      elements = v128.load(row2 + j);
      first = multiplyAdd(factor2, elements, first);
      sum2 = multiplyAdd(elements, other, sum2);
      elements = v128.load(row3 + j);
      second = multiplyAdd(factor3, elements, second);
      sum3 = multiplyAdd(elements, other, sum3);
      v128.store(target + j, f32x4.add(first, second));
    }
    let first = multiplyAdd(factor0, v128.load(row0), v128.load(target));
    let second = f32x4.mul(factor1, v128.load(row1));
    first = multiplyAdd(factor2, v128.load(row2), first);
    second = multiplyAdd(factor3, v128.load(row3), second);
    v128.store(target, f32x4.add(f32x4.add(first, second), sumLanesOfFour(sum0, sum1, sum2, sum3)));
  }
}

/** pᵀA p for a symmetric A given by its upper triangle: elements off the diagonal count twice. */
export function symmetricCurvature(matrix: usize, size: usize, p: usize): f32 {
  let sum = f32x4.splat(0);
  const end = p + size;
  for (let i: usize = 0; i < size; i += VECTOR) {
    let row0 = matrix + (i >> 2) * size + i;
    let row1 = row0 + size;
    let row2 = row1 + size;
    let row3 = row2 + size;
    let part = p + i;
    const own = v128.load(part);
    // The 4 x 4 block on the diagonal: half of the diagonal's elements, and none below. The sum is doubled
    // later.
    let sum0 = f32x4.mul(v128.load(row0), f32x4.mul(own, f32x4(0.5, 1, 1, 1)));
    let sum1 = f32x4.mul(
      v128.and(v128.load(row1), i32x4(0, -1, -1, -1)),
      f32x4.mul(own, f32x4(0, 0.5, 1, 1)),
    );
    let sum2 = f32x4.mul(v128.and(v128.load(row2), i32x4(0, 0, -1, -1)), f32x4.mul(own, f32x4(0, 0, 0.5, 1)));
    let sum3 = f32x4.mul(v128.and(v128.load(row3), i32x4(0, 0, 0, -1)), f32x4.mul(own, f32x4(0, 0, 0, 0.5)));
    for (part += VECTOR; part < end; part += VECTOR) {
      row0 += VECTOR;
      row1 += VECTOR;
      row2 += VECTOR;
      row3 += VECTOR;
      const other = v128.load(part);
      sum0 = multiplyAdd(v128.load(row0), other, sum0);
      sum1 = multiplyAdd(v128.load(row1), other, sum1);
      sum2 = multiplyAdd(v128.load(row2), other, sum2);
      sum3 = multiplyAdd(v128.load(row3), other, sum3);
    }
    sum = multiplyAdd(own, sumLanesOfFour(sum0, sum1, sum2, sum3), sum);
  }
  return 2 * sumLanes(sum);
}
