/**
 * Conjugate gradients for one row whose ratings do not fit scratch. The caller copies them there piece by
 * piece, once in each pass, and A is not formed:
 *
 *     pass 0        r = Σ (t - w θᵀx) θ - G x - shift x       startLongRow, then beginLongRow
 *     passes 1 ..   q = Σ w (θᵀp) θ + G p + shift p           stepLongRow
 *     the last      pᵀA p                                     takeLastLongStep
 *
 * Explicit ratings have w = 1 and no G; implicit ones have no bias. Each PART_RATINGS ratings are summed by
 * themselves, so that a row of millions of ratings has no float32 chain of millions of additions. The result
 * has the same bits for any pieces if all but the last have a multiple of PART_RATINGS ratings.
 *
 * Memory of a row, at `work`: the state (its objective, the numbers of steps.ts, and four lanes to which
 * passes add), 128 bytes for products, then `size` bytes each for r, p, q, s, a part's sum and its s, and a
 * panel of 8 * size.
 */
import { addShift } from '../implicit/conjugate-gradient';
import { multiplyGram } from '../implicit/multiply-gram';
import { gatherAndMultiplyWeighted } from '../implicit/weighted-panels';
import { PART_RATINGS, addVector } from '../normal-equations';
import { sumLanes } from '../simd';
import { allFinite, clear, copy, dot, scale } from '../vectors';
import { addGatheredCurvature, symmetricCurvature } from './curvature';
import { biasOf } from './eliminate-bias';
import { NO_PANELS, gatherAndMultiply } from './gather-panels';
import { beginSteps, endResidual, isConverged, lower, takeLastStep, takeStep } from './steps';

/** Passes of passLongRow. */
const RESIDUAL: i32 = 0;
const CURVATURE: i32 = 2;

const NUMBERS: usize = 8;
const LANES: usize = 32;
const PRODUCTS: usize = 64;
const VECTORS: usize = 192;

@inline
function residualOf(work: usize): usize {
  return work + VECTORS;
}

@inline
function directionOf(work: usize, size: usize): usize {
  return work + VECTORS + size;
}

@inline
function productOf(work: usize, size: usize): usize {
  return work + VECTORS + 2 * size;
}

@inline
function sumsOf(work: usize, size: usize): usize {
  return work + VECTORS + 3 * size;
}

@inline
function partOf(work: usize, size: usize): usize {
  return work + VECTORS + 4 * size;
}

/**
 * Before pass 0. `x`: becomes a copy of `previous`. `gram`: G, or 0. `anchored`: see
 * implicit/conjugate-gradient.ts.
 */
export function startLongRow(
  size: usize,
  gram: usize,
  shift: f32,
  anchored: bool,
  previous: usize,
  x: usize,
  work: usize,
): void {
  if (x != previous) copy(x, previous, size);
  const r = residualOf(work);
  if (anchored) {
    clear(r, size);
  } else if (gram) {
    multiplyGram(gram, size, x, r);
    addShift(r, -1, shift, x, size);
  } else {
    scale(r, -shift, x, size);
  }
  clear(sumsOf(work, size), size);
  v128.store(work + LANES, f32x4.splat(0));
}

/**
 * One pass over a piece of the row's ratings.
 *
 * - `pass`: 0 computes the residual of x, 1 the product with p, 2 only pᵀA p.
 * - `values`: ratings, or targets where `weights` is not 0. Read in pass 0.
 * - `weights`: 0, or weights as written by weighRatings.
 * - `biased`: true to add Σ θ in pass 0.
 * - `far`: see gatherAndMultiply.
 */
export function passLongRow(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  weights: usize,
  count: i32,
  pass: i32,
  biased: bool,
  x: usize,
  work: usize,
  far: bool,
): void {
  const products = work + PRODUCTS;
  const lanes = products + 32;
  const part = partOf(work, size);
  const partSums = part + size;
  const panel = partSums + size;
  const from = pass == RESIDUAL ? x : directionOf(work, size);
  const target = pass == RESIDUAL ? residualOf(work) : productOf(work, size);
  const sums: usize = biased && pass == RESIDUAL ? partSums : 0;
  for (let start = 0; start < count; start += PART_RATINGS) {
    const n = min(count - start, PART_RATINGS);
    const at = (<usize>start) << 2;
    const own: usize = pass == RESIDUAL ? values + at : 0;
    const weight: usize = weights ? weights + at : 0;
    v128.store(lanes, f32x4.splat(0));
    clear(part, size);
    if (sums) clear(sums, size);
    if (pass == CURVATURE)
      addGatheredCurvature(theta, size, indices + at, weight, n, panel, from, products, lanes);
    else if (weights)
      gatherAndMultiplyWeighted(
        theta,
        size,
        indices + at,
        own,
        weight,
        n,
        0,
        NO_PANELS,
        panel,
        from,
        part,
        products,
        far,
      );
    else
      gatherAndMultiply(
        theta,
        size,
        indices + at,
        own,
        n,
        0,
        NO_PANELS,
        panel,
        from,
        part,
        products,
        sums,
        far,
      );
    if (pass != CURVATURE) addVector(target, part, size);
    if (sums) addVector(sumsOf(work, size), sums, size);
    v128.store(work + LANES, f32x4.add(v128.load(work + LANES), v128.load(lanes)));
  }
}

/** Prepares the next pass: q = G p + shift p. */
@inline
function prepare(size: usize, gram: usize, shift: f32, work: usize): void {
  const p = directionOf(work, size);
  const q = productOf(work, size);
  if (gram) {
    multiplyGram(gram, size, p, q);
    addShift(q, 1, shift, p, size);
  } else {
    scale(q, shift, p, size);
  }
  v128.store(work + LANES, f32x4.splat(0));
}

/**
 * After pass 0. `weight` and `total`: c and t of the row's bias (eliminate-bias.ts); `weight` is 0 without a
 * bias. Returns true if a step should follow.
 */
export function beginLongRow(
  size: usize,
  gram: usize,
  shift: f32,
  weight: f32,
  total: f32,
  x: usize,
  work: usize,
): bool {
  const r = residualOf(work);
  const sums: usize = weight > 0 ? sumsOf(work, size) : 0;
  const numbers = work + NUMBERS;
  const along = sumLanes(v128.load(work + LANES));
  const biasSquares = endResidual(size, sums, weight, total, along, x, r, work);
  const rho = beginSteps(size, sums, biasSquares, r, directionOf(work, size), numbers);
  if (isConverged(rho, numbers)) return false;
  prepare(size, gram, shift, work);
  return true;
}

/** After a pass for the product. Returns true if a step should follow. */
export function stepLongRow(size: usize, gram: usize, shift: f32, weight: f32, x: usize, work: usize): bool {
  const numbers = work + NUMBERS;
  const sums: usize = weight > 0 ? sumsOf(work, size) : 0;
  const p = directionOf(work, size);
  const q = productOf(work, size);
  const rho = takeStep(size, sums, weight, x, residualOf(work), p, q, numbers, work);
  if (rho < 0 || isConverged(rho, numbers)) return false;
  prepare(size, gram, shift, work);
  return true;
}

/** The last step, after a pass for pᵀA p. */
export function takeLastLongStep(
  size: usize,
  gram: usize,
  shift: f32,
  weight: f32,
  x: usize,
  work: usize,
): void {
  const p = directionOf(work, size);
  const sums: usize = weight > 0 ? sumsOf(work, size) : 0;
  let curvature = sumLanes(v128.load(work + LANES)) + shift * dot(p, p, size);
  if (gram) curvature += symmetricCurvature(gram, size, p);
  takeLastStep(size, sums, weight, curvature, x, p, work + NUMBERS, work);
}

/**
 * After the steps: writes the row's bias unless `weight` is 0. Returns true if x is finite. The row's
 * objective is then the float64 at `work`.
 */
export function endLongRow(
  size: usize,
  weight: f32,
  total: f32,
  bias: usize,
  x: usize,
  work: usize,
): bool {
  if (weight > 0) {
    store<f32>(bias, biasOf(size, sumsOf(work, size), weight, total, x));
    lower(work, total, weight);
  }
  return allFinite(x, size);
}
