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
 * A bias of the row is one more unknown, with column s of A and diagonal c. It is eliminated first: x solves
 * (A - s sᵀ / c) x = b - (t / c) s, whose condition is never worse than the full system's
 * (eliminate-bias.ts).
 *
 * The last step needs no residual, and takes pᵀq from curvature.ts, at half the work of q.
 *
 * The objective xᵀA x - 2 bᵀx, which x minimizes, is cheap: it starts at -xᵀ(b + r), and each step lowers it
 * by α ρ.
 *
 * A is applied either matrix-free through the row's panels (panels.ts, packed-panels.ts), or as a formed
 * matrix whose upper triangle is valid.
 */
import { VECTOR, multiplyAdd, sumLanes } from '../simd';
import { clear, dot, scale } from '../vectors';
import { addGatheredCurvature, addPanelsCurvature, symmetricCurvature } from './curvature';
import { NO_PANELS, PACKED_PANELS, PANELS, gatherAndMultiply } from './gather-panels';
import { multiplyPackedPanels } from './packed-panels';
import { multiplyPanels } from './panels';
import { beginSteps, endResidual, isConverged, isSettled, takeLastStep, takeStep } from './steps';

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
export function packs(indices: usize, size: usize, count: i32, steps: i32, settles: bool): bool {
  if (settles || (<usize>steps) << 4 > size || <usize>count * size < PACKED_FROM) return false;
  const least = <i32>(size >> 1);
  let differing = 1;
  for (let at = indices + 4, end = indices + ((<usize>count) << 2); at < end && differing < least; at += 4)
    differing += i32(load<i32>(at) != load<i32>(at - 4));
  return differing >= least;
}

/** The address after the panels of `kept` ratings. */
@inline
export function endOfPanels(panels: usize, size: usize, kept: i32, packed: bool): usize {
  return panels + <usize>kept * (packed ? size >> 1 : size);
}

/**
 * Runs the steps of CG, from the residual of x that is in `work`.
 *
 * - `matrix`: A, or 0 for the A = ΘᵀΘ + shift I of the row's ratings, which is then applied without being
 *   formed: the first `kept` rows of Θ from their copy in `panels`, the others read from `theta` in each pass.
 * - `sums`: 0, or s, the column of A for a bias. The bias is eliminated before the steps.
 * - `biasSquares`: ‖b‖², or a lower bound of it.
 * - `work`: r, p, q of `size` bytes each, and 128 bytes more.
 * - `objective`: a float64, the objective of the first x; replaced by the objective of the last.
 * - `far`: see gatherAndMultiply.
 *
 * Returns true if the last residual is known to be settled: at most 1e-5 of ‖b‖. With `settles` every step
 * computes its residual; without it, the last step does not.
 */
function iterate(
  matrix: usize,
  theta: usize,
  size: usize,
  indices: usize,
  count: i32,
  kept: i32,
  shift: f32,
  sums: usize,
  weight: f32,
  x: usize,
  steps: i32,
  settles: bool,
  biasSquares: f32,
  panels: usize,
  work: usize,
  objective: usize,
  far: bool,
): bool {
  const r = work;
  const p = r + size;
  const q = p + size;
  const factors = q + size;
  const packed = packs(indices, size, count, steps, settles);
  const spare = endOfPanels(panels, size, kept, packed);
  const numbers = factors + 96;
  let rho = beginSteps(size, sums, biasSquares, r, p, numbers);
  if (isConverged(rho, numbers)) return isSettled(rho, biasSquares);
  const full = settles ? steps : steps - 1;
  for (let step = 0; step < full; step++) {
    if (matrix) {
      multiplySymmetric(matrix, size, p, q);
    } else {
      scale(q, shift, p, size);
      const backward = (step & 1) == 0;
      if (packed) multiplyPackedPanels(panels, size, 0, min(kept, count), backward, p, q, factors);
      else multiplyPanels(panels, size, min(kept, count), backward, p, q, factors);
      if (kept < count)
        gatherAndMultiply(
          theta,
          size,
          indices + ((<usize>kept) << 2),
          0,
          count - kept,
          0,
          NO_PANELS,
          spare,
          p,
          q,
          factors,
          0,
          far,
        );
    }
    rho = takeStep(size, sums, weight, x, r, p, q, numbers, objective);
    if (rho < 0) return false;
    if (isConverged(rho, numbers)) return isSettled(rho, biasSquares);
  }
  if (settles || steps == 0) return false;
  let curvature: f32;
  if (matrix) {
    curvature = symmetricCurvature(matrix, size, p);
  } else {
    const sum = factors + 32;
    v128.store(sum, f32x4.splat(0));
    addPanelsCurvature(panels, size, 0, min(kept, count), packed, (steps & 1) == 1, p, factors, sum);
    if (kept < count)
      addGatheredCurvature(
        theta,
        size,
        indices + ((<usize>kept) << 2),
        0,
        count - kept,
        spare,
        p,
        factors,
        sum,
      );
    curvature = sumLanes(v128.load(sum)) + shift * dot(p, p, size);
  }
  takeLastStep(size, sums, weight, curvature, x, p, numbers, objective);
  return false;
}

/**
 * Solves A x = b for a formed A, of which the upper triangle is read. `work`: 3 * size + 128 bytes.
 * `objective`: address of the float64 xᵀA x - 2 bᵀx.
 */
export function solveFormed(
  matrix: usize,
  size: usize,
  b: usize,
  x: usize,
  steps: i32,
  work: usize,
  objective: usize,
): void {
  multiplySymmetric(matrix, size, x, work);
  for (let j: usize = 0; j < size; j += VECTOR)
    v128.store(work + j, f32x4.sub(v128.load(b + j), v128.load(work + j)));
  store<f64>(objective, -(<f64>dot(b, x, size) + <f64>dot(work, x, size)));
  iterate(matrix, 0, size, 0, 0, 0, 0, 0, 0, x, steps, false, dot(b, b, size), 0, work, objective, false);
}

/**
 * Solves (ΘᵀΘ + shift I) x = Θᵀ r, matrix-free, over the `count` > 0 ratings r of a row.
 *
 * - `kept`, a positive multiple of 8: the number of ratings whose panels are kept, the first of the row.
 * - `panels`: `size` bytes for each of min(kept, count rounded up to 8), half of that where they are packed;
 *   and 8 * size more if they are packed or count > kept.
 * - `work`: 3 * size + 128 bytes.
 * - `sums`: 0, or the address for s of a bias, with `weight` its c and `total` its t.
 * - `objective`: address of the float64 xᵀA x - 2 bᵀx; with a bias, of the full system.
 * - `far`: see gatherAndMultiply.
 *
 * Returns true if the last residual is known to be at most 1e-5 of ‖b‖. With `settles` every step computes
 * its residual. ‖b‖ is underestimated unless x starts near 0 or near the solution, and then false is returned
 * more often than necessary.
 */
export function solveMatrixFree(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  count: i32,
  kept: i32,
  shift: f32,
  sums: usize,
  weight: f32,
  total: f32,
  x: usize,
  steps: i32,
  settles: bool,
  panels: usize,
  work: usize,
  objective: usize,
  far: bool,
): bool {
  const factors = work + 3 * size;
  const products = factors + 32;
  v128.store(products, f32x4.splat(0));
  scale(work, -shift, x, size);
  if (sums) clear(sums, size);
  const packed = packs(indices, size, count, steps, settles);
  const spare = endOfPanels(panels, size, kept, packed);
  gatherAndMultiply(
    theta,
    size,
    indices,
    values,
    min(kept, count),
    panels,
    packed ? PACKED_PANELS : PANELS,
    spare,
    x,
    work,
    factors,
    sums,
    far,
  );
  if (kept < count) {
    const at = (<usize>kept) << 2;
    gatherAndMultiply(
      theta,
      size,
      indices + at,
      values + at,
      count - kept,
      0,
      NO_PANELS,
      spare,
      x,
      work,
      factors,
      sums,
      far,
    );
  }
  const biasSquares = endResidual(
    size,
    sums,
    weight,
    total,
    sumLanes(v128.load(products)),
    x,
    work,
    objective,
  );
  return iterate(
    0,
    theta,
    size,
    indices,
    count,
    kept,
    shift,
    sums,
    weight,
    x,
    steps,
    settles,
    biasSquares,
    panels,
    work,
    objective,
    far,
  );
}
