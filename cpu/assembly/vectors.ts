/** Dense vectors of `bytes` = 4 * stride bytes (a multiple of 32), whose padding elements are zero. */
import { VECTOR, WORD, multiplyAdd, sumLanes } from './simd';

/** y = 0 */
export function clear(y: usize, bytes: usize): void {
  const zero = f32x4.splat(0);
  for (let j: usize = 0; j < bytes; j += VECTOR) v128.store(y + j, zero);
}

/** y = x */
export function copy(y: usize, x: usize, bytes: usize): void {
  for (let j: usize = 0; j < bytes; j += VECTOR) v128.store(y + j, v128.load(x + j));
}

/** y = a x */
export function scale(y: usize, a: f32, x: usize, bytes: usize): void {
  const factor = f32x4.splat(a);
  for (let j: usize = 0; j < bytes; j += VECTOR) v128.store(y + j, f32x4.mul(factor, v128.load(x + j)));
}

/** y += a x */
export function addMultiple(y: usize, a: f32, x: usize, bytes: usize): void {
  const factor = f32x4.splat(a);
  for (let j: usize = 0; j < bytes; j += VECTOR)
    v128.store(y + j, multiplyAdd(factor, v128.load(x + j), v128.load(y + j)));
}

/** The sum of `count` numbers, in float64 and two chains. */
export function sumOf(values: usize, count: i32): f64 {
  let even = f64x2.splat(0);
  let odd = even;
  let k = 0;
  for (; k + 4 <= count; k += 4) {
    const four = v128.load(values + ((<usize>k) << 2));
    even = f64x2.add(even, f64x2.promote_low_f32x4(four));
    odd = f64x2.add(odd, f64x2.promote_low_f32x4(v128.shuffle<f32>(four, four, 2, 3, 2, 3)));
  }
  const both = f64x2.add(even, odd);
  let sum = f64x2.extract_lane(both, 0) + f64x2.extract_lane(both, 1);
  for (; k < count; k++) sum += <f64>load<f32>(values + <usize>k * WORD);
  return sum;
}

/** Σ (x - mean)² of `count` numbers, in float64 and two chains. */
export function squaredDeviations(values: usize, count: i32, mean: f64): f64 {
  const means = f64x2.splat(mean);
  let even = f64x2.splat(0);
  let odd = even;
  let k = 0;
  for (; k + 4 <= count; k += 4) {
    const four = v128.load(values + ((<usize>k) << 2));
    const low = f64x2.sub(f64x2.promote_low_f32x4(four), means);
    const high = f64x2.sub(f64x2.promote_low_f32x4(v128.shuffle<f32>(four, four, 2, 3, 2, 3)), means);
    even = f64x2.add(even, f64x2.mul(low, low));
    odd = f64x2.add(odd, f64x2.mul(high, high));
  }
  const both = f64x2.add(even, odd);
  let sum = f64x2.extract_lane(both, 0) + f64x2.extract_lane(both, 1);
  for (; k < count; k++) {
    const apart = <f64>load<f32>(values + <usize>k * WORD) - mean;
    sum += apart * apart;
  }
  return sum;
}

/**
 * Writes the least and the largest of `count` > 0 numbers to Float32[2] at `bounds`. Returns 1 if all of the
 * numbers are whole, else 0.
 */
export function boundsOf(values: usize, count: i32, bounds: usize): i32 {
  let least = f32x4.splat(load<f32>(values));
  let most = least;
  let broken = f32x4.splat(0);
  let k = 0;
  for (; k + 4 <= count; k += 4) {
    const four = v128.load(values + ((<usize>k) << 2));
    least = f32x4.min(least, four);
    most = f32x4.max(most, four);
    broken = v128.or(broken, f32x4.ne(f32x4.trunc(four), four));
  }
  for (; k < count; k++) {
    const one = f32x4.splat(load<f32>(values + <usize>k * WORD));
    least = f32x4.min(least, one);
    most = f32x4.max(most, one);
    broken = v128.or(broken, f32x4.ne(f32x4.trunc(one), one));
  }
  store<f32>(
    bounds,
    min(
      min(f32x4.extract_lane(least, 0), f32x4.extract_lane(least, 1)),
      min(f32x4.extract_lane(least, 2), f32x4.extract_lane(least, 3)),
    ),
  );
  store<f32>(
    bounds,
    max(
      max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1)),
      max(f32x4.extract_lane(most, 2), f32x4.extract_lane(most, 3)),
    ),
    4,
  );
  return v128.any_true(broken) ? 0 : 1;
}

/** aᵀb, in two interleaved chains of sums. */
@inline
export function dot(a: usize, b: usize, bytes: usize): f32 {
  let even = f32x4.splat(0);
  let odd = even;
  for (let j: usize = 0; j < bytes; j += 2 * VECTOR) {
    even = multiplyAdd(v128.load(a + j), v128.load(b + j), even);
    odd = multiplyAdd(v128.load(a + j, 16), v128.load(b + j, 16), odd);
  }
  return sumLanes(f32x4.add(even, odd));
}

/** True when no element is infinite or NaN: exactly then x * 0 is 0 for every element. */
export function allFinite(x: usize, bytes: usize): bool {
  const zero = f32x4.splat(0);
  let sum = zero;
  for (let j: usize = 0; j < bytes; j += VECTOR) sum = f32x4.add(sum, f32x4.mul(v128.load(x + j), zero));
  return sumLanes(sum) == 0;
}
