/**
 * The bias β of a row in addition to its factors x. With s = Σ θ_v, t = Σ r_uv and c, the number of ratings n
 * plus the bias's regularization, the normal equations are
 *
 *     | A + shift I   s | | x |   | b |
 *     | sᵀ            c | | β | = | t |
 *
 * β = (t - sᵀx) / c is eliminated, which leaves a system of A's size for every solver:
 *
 *     (A + shift I - s sᵀ / c) x = b - (t / c) s
 */
import { VECTOR, WORD, multiplyAdd, multiplySubtract, sumLanes } from '../simd';
import { addMultiple, dot } from '../vectors';

/** Eliminates β from A (upper triangle, without the shift) and b. */
export function eliminateBias(
  matrix: usize,
  size: usize,
  b: usize,
  sums: usize,
  weight: f32,
  total: f32,
): void {
  addMultiple(b, -total / weight, sums, size);
  for (let i: usize = 0; i < size; i += WORD) {
    const from = i & ~(VECTOR - 1);
    addMultiple(matrix + (i >> 2) * size + from, -load<f32>(sums + i) / weight, sums + from, size - from);
  }
}

/** β of a solved x. */
@inline
export function biasOf(size: usize, sums: usize, weight: f32, total: f32, x: usize): f32 {
  return (total - dot(sums, x, size)) / weight;
}

/** q -= a s for q = A p and a = sᵀp / c, which eliminates the bias from the product. Returns the new pᵀq. */
@inline
export function projectOut(a: f32, s: usize, p: usize, q: usize, size: usize): f32 {
  const factor = f32x4.splat(a);
  let even = f32x4.splat(0);
  let odd = even;
  for (let j: usize = 0; j < size; j += 2 * VECTOR) {
    const left = multiplySubtract(factor, v128.load(s + j), v128.load(q + j));
    const right = multiplySubtract(factor, v128.load(s + j, 16), v128.load(q + j, 16));
    v128.store(q + j, left);
    v128.store(q + j, right, 16);
    even = multiplyAdd(v128.load(p + j), left, even);
    odd = multiplyAdd(v128.load(p + j, 16), right, odd);
  }
  return sumLanes(f32x4.add(even, odd));
}

/**
 * p = r + β p, where β is CG's ρ'/ρ. Also returns sᵀp. It is needed only after the product A p, so its
 * latency is hidden.
 */
@inline
export function turnWithBias(beta: f32, s: usize, p: usize, r: usize, size: usize): f32 {
  const factor = f32x4.splat(beta);
  let even = f32x4.splat(0);
  let odd = even;
  for (let j: usize = 0; j < size; j += 2 * VECTOR) {
    const left = multiplyAdd(factor, v128.load(p + j), v128.load(r + j));
    const right = multiplyAdd(factor, v128.load(p + j, 16), v128.load(r + j, 16));
    v128.store(p + j, left);
    v128.store(p + j, right, 16);
    even = multiplyAdd(v128.load(s + j), left, even);
    odd = multiplyAdd(v128.load(s + j, 16), right, odd);
  }
  return sumLanes(f32x4.add(even, odd));
}
