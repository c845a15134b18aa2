/**
 * Conjugate gradients for rows whose ratings are divided among devices, which exchange vectors (see
 * operators/tasks/vector-tasks.ts for the layout of a row's numbers). Each device computes products with its
 * own ratings (addVectorProducts). When these have been summed over the devices, one of them takes the row's
 * step.
 *
 * - `gradients`: the row's r.
 * - `scalars`: the numbers after r in that layout.
 * - `sums`: s of a bias, or 0.
 */
import { addShift } from '../implicit/conjugate-gradient';
import { multiplyGram } from '../implicit/multiply-gram';
import { gatherAndMultiplyWeighted } from '../implicit/weighted-panels';
import { sumLanes } from '../simd';
import { addMultiple, allFinite, clear, copy, dot } from '../vectors';
import { biasOf, projectOut } from './eliminate-bias';
import { NO_PANELS, gatherAndMultiply } from './gather-panels';
import { advance, endingRho, turn } from './steps';

/** Byte offsets, from n, of a row's numbers t, along, ρ and the ρ at which the steps end. */
const TOTAL: usize = 4;
const ALONG: usize = 8;
const RHO: usize = 12;
const ENDING_RHO: usize = 16;

/**
 * Adds products with `count` > 0 ratings: y += Σ (θᵀp) θ, or with `values` y += Σ (r - θᵀp) θ; with `sums`
 * also sums += Σ θ. Returns Σ r θᵀp. `weights`: 0, or the weights of implicit data; `values` are then their
 * targets. work: 96 + 8 * size bytes.
 */
export function addVectorProducts(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  weights: usize,
  count: i32,
  p: usize,
  y: usize,
  sums: usize,
  work: usize,
): f32 {
  const products = work + 32;
  v128.store(products, f32x4.splat(0));
  if (weights)
    gatherAndMultiplyWeighted(
      theta,
      size,
      indices,
      values,
      weights,
      count,
      0,
      NO_PANELS,
      work + 96,
      p,
      y,
      work,
      true,
    );
  else
    gatherAndMultiply(theta, size, indices, values, count, 0, NO_PANELS, work + 96, p, y, work, sums, true);
  return sumLanes(v128.load(products));
}

/**
 * Turns the sums over all devices into the residual of x, and makes it the first direction p. `weight`: c of
 * a bias; `gram`: 0, or G of implicit data.
 */
export function beginVectors(
  size: usize,
  gram: usize,
  shift: f32,
  weight: f32,
  gradients: usize,
  scalars: usize,
  sums: usize,
  x: usize,
  p: usize,
): void {
  let along = load<f32>(scalars, ALONG);
  if (gram) {
    multiplyGram(gram, size, x, p);
    addShift(p, 1, shift, x, size);
    addMultiple(gradients, -1, p, size);
  } else {
    addMultiple(gradients, -shift, x, size);
  }
  if (sums) {
    const total = load<f32>(scalars, TOTAL);
    const sum = dot(sums, x, size);
    addMultiple(gradients, (sum - total) / weight, sums, size);
    along -= (total / weight) * sum;
  }
  const squares = dot(x, x, size);
  const rho = dot(gradients, gradients, size);
  // For x = 0 the residual is b itself.
  const biasSquares: f32 = squares > 0 ? (along * along) / squares : rho;
  const enough = endingRho(rho, biasSquares);
  store<f32>(scalars, enough, ENDING_RHO);
  if (rho <= enough) end(scalars, p, size);
  else {
    store<f32>(scalars, rho, RHO);
    copy(p, gradients, size);
  }
}

function end(scalars: usize, p: usize, size: usize): void {
  store<f32>(scalars, 0, RHO);
  clear(p, size);
}

/**
 * Takes a step of x along p. `products`: the products of p with the ratings of all devices. work: 2 * size
 * bytes.
 */
export function stepVectors(
  size: usize,
  gram: usize,
  shift: f32,
  weight: f32,
  gradients: usize,
  scalars: usize,
  sums: usize,
  x: usize,
  p: usize,
  products: usize,
  work: usize,
): void {
  const rho = load<f32>(scalars, RHO);
  if (rho == 0) return;
  const q = work;
  if (gram) {
    multiplyGram(gram, size, p, q);
    addMultiple(q, 1, products, size);
  } else {
    copy(q, products, size);
  }
  addMultiple(q, shift, p, size);
  const curvature: f32 = sums ? projectOut(dot(sums, p, size) / weight, sums, p, q, size) : dot(p, q, size);
  if (curvature <= 0) {
    end(scalars, p, size);
    return;
  }
  const next = advance(rho / curvature, p, q, x, gradients, size);
  if (next <= load<f32>(scalars, ENDING_RHO)) {
    end(scalars, p, size);
    return;
  }
  turn(next / rho, p, gradients, size);
  store<f32>(scalars, next, RHO);
}

/** Writes the row's bias to `bias` unless that is 0. Returns true if x is finite. */
export function endVectors(
  size: usize,
  weight: f32,
  scalars: usize,
  sums: usize,
  bias: usize,
  x: usize,
): bool {
  if (bias) store<f32>(bias, biasOf(size, sums, weight, load<f32>(scalars, TOTAL), x));
  return allFinite(x, size);
}
