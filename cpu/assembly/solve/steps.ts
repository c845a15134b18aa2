/**
 * The vector and scalar arithmetic of conjugate gradients: the first residual, and steps along given
 * directions. Products of directions with the ratings are computed elsewhere: by one row's panels
 * (conjugate-gradient.ts), or tile by tile for many rows (tiled/). Between steps, three numbers of a row are
 * in memory: see ENDING_RHO.
 */
import { VECTOR, multiplyAdd, multiplySubtract, sumLanes } from '../simd';
import { addMultiple, copy, dot } from '../vectors';
import { projectOut, turnWithBias } from './eliminate-bias';

/** Limits of ρ = ‖r‖² relative to ‖b‖², and relative to the first ρ. */
const BIAS_TOLERANCE: f32 = 1e-10;
const RESIDUAL_TOLERANCE: f32 = 1e-12;
/** Below this ρ, products of its square root's size would underflow. */
const SMALLEST: f32 = 1e-30;

/** Offsets of a row's numbers, 16 bytes in total: ρ at 0, the ρ at which the steps end, and sᵀp. */
const ENDING_RHO: usize = 4;
const BIAS_PRODUCT: usize = 8;

/** x += α p; r -= α q; gives the new rᵀr. */
@inline
export function advance(alpha: f32, p: usize, q: usize, x: usize, r: usize, size: usize): f32 {
  const step = f32x4.splat(alpha);
  let sum = f32x4.splat(0);
  for (let j: usize = 0; j < size; j += VECTOR) {
    v128.store(x + j, multiplyAdd(step, v128.load(p + j), v128.load(x + j)));
    const rest = multiplySubtract(step, v128.load(q + j), v128.load(r + j));
    v128.store(r + j, rest);
    sum = multiplyAdd(rest, rest, sum);
  }
  return sumLanes(sum);
}

/** p = r + β p */
@inline
export function turn(beta: f32, p: usize, r: usize, size: usize): void {
  const factor = f32x4.splat(beta);
  for (let j: usize = 0; j < size; j += VECTOR)
    v128.store(p + j, multiplyAdd(factor, v128.load(p + j), v128.load(r + j)));
}

/** Lowers the objective by α ρ, with α = ρ / pᵀq. */
@inline
export function lower(objective: usize, rho: f32, curvature: f32): void {
  store<f64>(objective, load<f64>(objective) - (<f64>rho * <f64>rho) / <f64>curvature);
}

/** True where ‖r‖ is at most 1e-5 of ‖b‖, as after exact solves. */
@inline
export function isSettled(rho: f32, biasSquares: f32): bool {
  return rho <= biasSquares * BIAS_TOLERANCE;
}

/** Returns the ρ at which the steps end. `rho`: the first ρ; `biasSquares`: ‖b‖² or a lower bound of it. */
@inline
export function endingRho(rho: f32, biasSquares: f32): f32 {
  const enough: f32 = max(max(rho * RESIDUAL_TOLERANCE, biasSquares * BIAS_TOLERANCE), SMALLEST);
  // If this limit overflows float32, the numbers are not small. Then the steps continue, and the solution
  // becomes infinite or NaN.
  return enough < Infinity ? enough : 0;
}

/**
 * Completes the residual r of x, which on entry is Σ (r_uv - θ_vᵀx) θ_v - shift x: with `sums`, eliminates
 * the bias. Stores the objective xᵀA x - 2 bᵀx. Returns ‖b‖² or a lower bound of it.
 *
 * - `along`: Σ r_uv θ_vᵀx.
 * - `sums`: 0, or s of a bias, with `weight` its c and `total` its t.
 */
@inline
export function endResidual(
  size: usize,
  sums: usize,
  weight: f32,
  total: f32,
  along: f32,
  x: usize,
  r: usize,
  objective: usize,
): f32 {
  if (sums) {
    const sum = dot(sums, x, size);
    addMultiple(r, (sum - total) / weight, sums, size);
    along -= (total / weight) * sum;
  }
  store<f64>(objective, -(<f64>along + <f64>dot(r, x, size)));
  const squares = dot(x, x, size);
  // For x = 0 the residual is b itself.
  return squares > 0 ? (along * along) / squares : dot(r, r, size);
}

/**
 * Starts the steps: p = r, and the row's numbers are stored. Returns ρ. If ρ is at most endingRho, no step
 * should follow.
 */
@inline
export function beginSteps(
  size: usize,
  sums: usize,
  biasSquares: f32,
  r: usize,
  p: usize,
  numbers: usize,
): f32 {
  const rho = dot(r, r, size);
  store<f32>(numbers, rho);
  store<f32>(numbers, endingRho(rho, biasSquares), ENDING_RHO);
  copy(p, r, size);
  store<f32>(numbers, sums ? dot(sums, p, size) : 0, BIAS_PRODUCT);
  return rho;
}

/** True where ρ is small enough to end. */
@inline
export function isConverged(rho: f32, numbers: usize): bool {
  return rho <= load<f32>(numbers, ENDING_RHO);
}

/**
 * Takes a step along p. On entry q = A p, without the bias's term. Returns the new ρ, and computes the next
 * direction unless ρ is small enough to end. If A is almost singular, so that rounding makes pᵀq 0 or
 * negative, takes no step and returns -1: x is then as good as float32 allows.
 */
@inline
export function takeStep(
  size: usize,
  sums: usize,
  weight: f32,
  x: usize,
  r: usize,
  p: usize,
  q: usize,
  numbers: usize,
  objective: usize,
): f32 {
  const rho = load<f32>(numbers);
  const curvature: f32 = sums
    ? projectOut(load<f32>(numbers, BIAS_PRODUCT) / weight, sums, p, q, size)
    : dot(p, q, size);
  if (curvature <= 0) return -1;
  const next = advance(rho / curvature, p, q, x, r, size);
  lower(objective, rho, curvature);
  if (isConverged(next, numbers)) return next;
  if (sums) store<f32>(numbers, turnWithBias(next / rho, sums, p, r, size), BIAS_PRODUCT);
  else turn(next / rho, p, r, size);
  store<f32>(numbers, next);
  return next;
}

/** Takes the last step, without computing a residual. `curvature`: pᵀA p without the bias's term. */
@inline
export function takeLastStep(
  size: usize,
  sums: usize,
  weight: f32,
  curvature: f32,
  x: usize,
  p: usize,
  numbers: usize,
  objective: usize,
): void {
  const rho = load<f32>(numbers);
  const biasProduct = load<f32>(numbers, BIAS_PRODUCT);
  if (sums) curvature -= (biasProduct / weight) * biasProduct;
  if (curvature <= 0) return;
  addMultiple(x, rho / curvature, p, size);
  lower(objective, rho, curvature);
}
