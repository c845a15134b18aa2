/**
 * The bias β of a row beside its factors x: with s = Σ θ_v, t = Σ r_uv and c = n + λ n + d the normal equations are
 *
 *     | A + shift I   s | | x |   | b |
 *     | sᵀ            c | | β | = | t |
 *
 * β = (t - sᵀx) / c is eliminated, which leaves a system of the size of A, whatever solves it:
 *
 *     (A + shift I - s sᵀ / c) x = b - (t / c) s
 */
import { VECTOR, WORD } from '../simd';
import { addMultiple, dot } from '../vectors';

/** Takes β out of A (upper triangle, without the shift) and b. */
export function eliminateBias(matrix: usize, size: usize, b: usize, sums: usize, weight: f32, total: f32): void {
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
