/**
 * The vector and scalar arithmetic of conjugate gradients: the first residual, and steps along given
 * directions. Products of directions with the ratings are computed elsewhere: from one row's panels
 * (conjugate-gradient.ts), in passes over the ratings (passes.ts), or by several devices
 * (vectors.task.ts).
 *
 * A row's bias β is one more unknown. With s = Σ θ_v, t = Σ r_uv and c, the number of ratings n plus the
 * bias's regularization, the normal equations are
 *
 *     | A + shift I   s | | x |   | b |
 *     | sᵀ            c | | β | = | t |
 *
 * β = (t - sᵀx) / c is eliminated, which leaves a system of A's size for every solver, whose condition is
 * never worse than the full system's:
 *
 *     (A + shift I - s sᵀ / c) x = b - (t / c) s
 */
import { VECTOR, WORD, multiplyAdd, multiplySubtract, sumLanes } from '../simd';
import { addMultiple, copy, dot } from '../vectors';
import { RowProblem } from './problem';

/** Limits of ρ = ‖r‖² relative to ‖b‖², and relative to the first ρ. */
const BIAS_TOLERANCE: f32 = 1e-10;
const RESIDUAL_TOLERANCE: f32 = 1e-12;
/** Below this ρ, products of its square root's size would underflow. */
const SMALLEST: f32 = 1e-30;

/** x += α p; r -= α q; gives the new rᵀr. */
@inline
function advance(alpha: f32, p: usize, q: usize, x: usize, r: usize, size: usize): f32 {
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
function turn(beta: f32, p: usize, r: usize, size: usize): void {
  const factor = f32x4.splat(beta);
  for (let j: usize = 0; j < size; j += VECTOR)
    v128.store(p + j, multiplyAdd(factor, v128.load(p + j), v128.load(r + j)));
}

/** target = α a + b. Returns otherᵀ target. */
@inline
function addAndDot(alpha: f32, a: usize, b: usize, target: usize, other: usize, size: usize): f32 {
  const factor = f32x4.splat(alpha);
  let even = f32x4.splat(0);
  let odd = even;
  for (let j: usize = 0; j < size; j += 2 * VECTOR) {
    const left = multiplyAdd(factor, v128.load(a + j), v128.load(b + j));
    const right = multiplyAdd(factor, v128.load(a + j, 16), v128.load(b + j, 16));
    v128.store(target + j, left);
    v128.store(target + j, right, 16);
    even = multiplyAdd(v128.load(other + j), left, even);
    odd = multiplyAdd(v128.load(other + j, 16), right, odd);
  }
  return sumLanes(f32x4.add(even, odd));
}

/** Eliminates β from A (upper triangle, without the shift) and b. */
export function eliminateBias(row: RowProblem, matrix: usize, b: usize, sums: usize): void {
  const size = row.size;
  const weight = row.weight;
  addMultiple(b, -row.total / weight, sums, size);
  for (let i: usize = 0; i < size; i += WORD) {
    const from = i & ~(VECTOR - 1);
    addMultiple(matrix + (i >> 2) * size + from, -load<f32>(sums + i) / weight, sums + from, size - from);
  }
}

/** After x is solved: computes β, if the row has one, and completes the objective. */
export function finishRow(row: RowProblem, sums: usize): void {
  if (row.prior) row.objective += priorSquares(row);
  if (!row.bias) return;
  store<f32>(row.bias, (row.total - dot(sums, row.x, row.size)) / row.weight);
  lower(row, row.total, row.weight);
}

/** The prior's constant term of the objective: shift ‖a‖² + ownShift β₀². */
export function priorSquares(row: RowProblem): f64 {
  const squares = <f64>row.shift * <f64>dot(row.prior, row.prior, row.size);
  return row.bias ? squares + <f64>row.ownShift * <f64>row.priorBias * <f64>row.priorBias : squares;
}

/** Lowers the objective by α ρ, with α = ρ / pᵀq. */
@inline
function lower(row: RowProblem, rho: f32, curvature: f32): void {
  row.objective -= (<f64>rho * <f64>rho) / <f64>curvature;
}

/** True where ‖r‖ is at most 1e-5 of ‖b‖, as after exact solves. */
@inline
export function isSettled(rho: f32, biasSquares: f32): bool {
  return rho <= biasSquares * BIAS_TOLERANCE;
}

/**
 * Completes the residual r of x, which on entry is Σ (r_uv - θ_vᵀx) θ_v - shift x: with a bias, eliminates it.
 * Stores the objective. Returns ‖b‖² or a lower bound of it. `along`: Σ r_uv θ_vᵀx.
 */
@inline
export function endResidual(row: RowProblem, along: f32): f32 {
  const size = row.size;
  const x = row.x;
  const r = row.r;
  if (row.sums) {
    const sum = dot(row.sums, x, size);
    addMultiple(r, (sum - row.total) / row.weight, row.sums, size);
    along -= (row.total / row.weight) * sum;
  }
  row.objective = -(<f64>along + <f64>dot(r, x, size));
  const squares = dot(x, x, size);
  // For x = 0 the residual is b itself.
  return squares > 0 ? (along * along) / squares : dot(r, r, size);
}

/** Starts the steps: p = r. `biasSquares`: ‖b‖² or a lower bound of it. Returns ρ. */
@inline
export function beginSteps(row: RowProblem, biasSquares: f32): f32 {
  const size = row.size;
  const rho = dot(row.r, row.r, size);
  const enough: f32 = max(max(rho * RESIDUAL_TOLERANCE, biasSquares * BIAS_TOLERANCE), SMALLEST);
  row.rho = rho;
  // If this limit overflows float32, the numbers are not small. Then the steps continue, and the solution
  // becomes infinite or NaN.
  row.endingRho = enough < Infinity ? enough : 0;
  copy(row.p, row.r, size);
  row.biasProduct = row.sums ? dot(row.sums, row.p, size) : 0;
  return rho;
}

/** True where ρ is small enough to end. */
@inline
export function isConverged(row: RowProblem, rho: f32): bool {
  return rho <= row.endingRho;
}

/**
 * Takes a step along p. On entry q = A p, without the bias's term. Returns the new ρ, and computes the next
 * direction unless ρ is small enough to end. If A is almost singular, so that rounding makes pᵀq 0 or
 * negative, takes no step and returns -1: x is then as good as float32 allows.
 */
@inline
export function takeStep(row: RowProblem): f32 {
  const size = row.size;
  const sums = row.sums;
  const p = row.p;
  const q = row.q;
  const rho = row.rho;
  // With a bias q -= a s, where a = sᵀp / c: this eliminates it from the product.
  const curvature: f32 = sums
    ? addAndDot(-row.biasProduct / row.weight, sums, q, q, p, size)
    : dot(p, q, size);
  if (curvature <= 0) return -1;
  const next = advance(rho / curvature, p, q, row.x, row.r, size);
  lower(row, rho, curvature);
  if (isConverged(row, next)) return next;
  // sᵀp is needed only after the product A p, so its latency is hidden.
  if (sums) row.biasProduct = addAndDot(next / rho, p, row.r, p, sums, size);
  else turn(next / rho, p, row.r, size);
  row.rho = next;
  return next;
}

/** Takes the last step, without computing a residual. `curvature`: pᵀA p without the bias's term. */
@inline
export function takeLastStep(row: RowProblem, curvature: f32): void {
  if (row.sums) curvature -= (row.biasProduct / row.weight) * row.biasProduct;
  if (curvature <= 0) return;
  addMultiple(row.x, row.rho / curvature, row.p, row.size);
  lower(row, row.rho, curvature);
}
