/**
 * The few SIMD operations that all kernels use, on vectors of four float32 or two float64.
 *
 * Two builds are made from these sources. With relaxed SIMD a multiply-add is one instruction and rounds
 * once; without it, it is a product and a sum. ASC_FEATURE_RELAXED_SIMD is a constant of the compiler, so
 * each build contains only one of the branches.
 */

/** Bytes of one vector, and of one float32 or int32. */
export const VECTOR: usize = 16;
export const WORD: usize = 4;

/** a * b + c */
@inline
export function multiplyAdd<T = f32>(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return v128.relaxed_madd<T>(a, b, c);
  return v128.add<T>(c, v128.mul<T>(a, b));
}

/** c - a * b */
@inline
export function multiplySubtract<T = f32>(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return v128.relaxed_nmadd<T>(a, b, c);
  return v128.sub<T>(c, v128.mul<T>(a, b));
}

/** (v0 + v1) + (v2 + v3) */
@inline
export function sumLanes(v: v128): f32 {
  return (
    f32x4.extract_lane(v, 0) +
    f32x4.extract_lane(v, 1) +
    (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3))
  );
}

/** Sums the lanes of four vectors: [Σa, Σb, Σc, Σd], in two rounds of transposing and adding. */
@inline
export function sumLanesOfFour(a: v128, b: v128, c: v128, d: v128): v128 {
  // ab = a0+a2 b0+b2 a1+a3 b1+b3, and cd likewise
  const ab = f32x4.add(v128.shuffle<f32>(a, b, 0, 4, 1, 5), v128.shuffle<f32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<f32>(c, d, 0, 4, 1, 5), v128.shuffle<f32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<f32>(ab, cd, 0, 1, 4, 5), v128.shuffle<f32>(ab, cd, 2, 3, 6, 7));
}

/** Sums the lanes of four vectors of int32: [Σa, Σb, Σc, Σd]. */
@inline
export function sumLanesOfFourWhole(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

/** The column index of rating k of a compressed row. */
@inline
export function indexAt(indices: usize, k: i32): usize {
  return <usize>load<u32>(indices + ((<usize>k) << 2));
}
