/**
 * The weights of implicit data (Hu, Koren and Volinsky 2008). An observed pair weighs α |r| more than an
 * unobserved one, whose weight is `base`, and is preferred when r > 0. It adds w θ θᵀ to A and t θ to b:
 *
 *     w = α |r|        t = base + α r where r > 0, else 0
 *
 * Vector instructions read up to seven elements past the last rating, so both lists end in eight zeros.
 */
import { VECTOR, WORD } from './simd';

/**
 * Computes w and t of `count` ratings. `weights` and `targets` have room for `count` + 8 elements each,
 * rounded up to whole vectors.
 */
export function weighRatings(
  values: usize,
  count: i32,
  alpha: f32,
  base: f32,
  targets: usize,
  weights: usize,
): void {
  const bytes = <usize>count * WORD;
  const end = weights + bytes;
  const factor = f32x4.splat(alpha);
  const least = f32x4.splat(base);
  const zero = f32x4.splat(0);
  const targetsEnd = targets + bytes;
  for (; weights < end; weights += VECTOR) {
    const rating = v128.load(values);
    v128.store(weights, f32x4.mul(factor, f32x4.abs(rating)));
    v128.store(targets, v128.and(f32x4.gt(rating, zero), f32x4.add(least, f32x4.mul(factor, rating))));
    values += VECTOR;
    targets += VECTOR;
  }
  v128.store(end, zero);
  v128.store(end, zero, 16);
  v128.store(targetsEnd, zero);
  v128.store(targetsEnd, zero, 16);
}
