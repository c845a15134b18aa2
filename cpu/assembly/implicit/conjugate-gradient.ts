/**
 * Solves one row of implicit ALS by conjugate gradients (solve/conjugate-gradient.ts) without forming its A.
 * With the weight w and target t of each rating (weights.ts) and G, the Gram matrix of all θ:
 *
 *     A p = G p + shift p + Σ w θ (θᵀp)      b = Σ t θ
 *
 * The θ of the row's ratings are gathered once into panels, which all steps use. G is the same for all rows
 * and stays in the cache.
 *
 * `anchored` adds (G + shift) x to b, where x is the row's previous factors: ratings then move the row away
 * from x only as far as G and the shift allow. The first residual is Σ (t - w θᵀx) θ.
 */
import { endOfPanels, packs } from '../solve/conjugate-gradient';
import { addGatheredCurvature, addPanelsCurvature, symmetricCurvature } from '../solve/curvature';
import { NO_PANELS, PACKED_PANELS, PANELS } from '../solve/gather-panels';
import { multiplyPackedPanels } from '../solve/packed-panels';
import { beginSteps, endResidual, isConverged, isSettled, takeLastStep, takeStep } from '../solve/steps';
import { VECTOR, multiplyAdd, sumLanes } from '../simd';
import { clear, dot } from '../vectors';
import { multiplyGram } from './multiply-gram';
import { gatherAndMultiplyWeighted, multiplyWeightedPanels } from './weighted-panels';

/** y = a (y + shift p) */
@inline
export function addShift(y: usize, a: f32, shift: f32, p: usize, size: usize): void {
  const factor = f32x4.splat(a);
  const diagonal = f32x4.splat(shift);
  for (let j: usize = 0; j < size; j += VECTOR)
    v128.store(y + j, f32x4.mul(factor, multiplyAdd(diagonal, v128.load(p + j), v128.load(y + j))));
}

/**
 * Solves one row. `gram`: the upper triangle of G, in rows of `size` bytes. All other arguments and the
 * result are as in solveMatrixFree, with targets and weights in place of values.
 */
export function solveImplicit(
  theta: usize,
  size: usize,
  gram: usize,
  indices: usize,
  targets: usize,
  weights: usize,
  count: i32,
  kept: i32,
  shift: f32,
  anchored: bool,
  x: usize,
  steps: i32,
  settles: bool,
  panels: usize,
  work: usize,
  objective: usize,
  far: bool,
): bool {
  const r = work;
  const p = r + size;
  const q = p + size;
  const factors = q + size;
  const products = factors + 32;
  const numbers = factors + 96;
  const packed = packs(indices, size, count, steps, settles);
  const spare = endOfPanels(panels, size, kept, packed);
  const at = (<usize>kept) << 2;
  v128.store(products, f32x4.splat(0));
  if (anchored) {
    clear(r, size);
  } else {
    multiplyGram(gram, size, x, r);
    addShift(r, -1, shift, x, size);
  }
  gatherAndMultiplyWeighted(
    theta,
    size,
    indices,
    targets,
    weights,
    min(kept, count),
    panels,
    packed ? PACKED_PANELS : PANELS,
    spare,
    x,
    r,
    factors,
    far,
  );
  if (kept < count)
    gatherAndMultiplyWeighted(
      theta,
      size,
      indices + at,
      targets + at,
      weights + at,
      count - kept,
      0,
      NO_PANELS,
      spare,
      x,
      r,
      factors,
      far,
    );
  const along = sumLanes(v128.load(products));
  const biasSquares = endResidual(size, 0, 0, 0, along, x, r, objective);
  let rho = beginSteps(size, 0, biasSquares, r, p, numbers);
  if (isConverged(rho, numbers)) return isSettled(rho, biasSquares);
  const full = settles ? steps : steps - 1;
  for (let step = 0; step < full; step++) {
    multiplyGram(gram, size, p, q);
    addShift(q, 1, shift, p, size);
    const backward = (step & 1) == 0;
    if (packed) multiplyPackedPanels(panels, size, weights, min(kept, count), backward, p, q, factors);
    else multiplyWeightedPanels(panels, size, weights, min(kept, count), backward, p, q, factors);
    if (kept < count)
      gatherAndMultiplyWeighted(
        theta,
        size,
        indices + at,
        0,
        weights + at,
        count - kept,
        0,
        NO_PANELS,
        spare,
        p,
        q,
        factors,
        far,
      );
    rho = takeStep(size, 0, 0, x, r, p, q, numbers, objective);
    if (rho < 0) return false;
    if (isConverged(rho, numbers)) return isSettled(rho, biasSquares);
  }
  if (settles || steps == 0) return false;
  // The last step only needs pᵀA p, and computes no residual.
  v128.store(products, f32x4.splat(0));
  addPanelsCurvature(panels, size, weights, min(kept, count), packed, (steps & 1) == 1, p, factors, products);
  if (kept < count)
    addGatheredCurvature(theta, size, indices + at, weights + at, count - kept, spare, p, factors, products);
  const curvature =
    symmetricCurvature(gram, size, p) + shift * dot(p, p, size) + sumLanes(v128.load(products));
  takeLastStep(size, 0, 0, curvature, x, p, numbers, objective);
  return false;
}
