/**
 * Solves and checks the equations of a passive set, for non-negative least squares (nonnegative.ts). P is the
 * passive set: the features that may differ from zero. The others are zero.
 *
 *     z_P = A_PP⁻¹ b_P,   z = 0 elsewhere,   g = A z - b          g_P = 0
 *
 * A and b are the float32 of the normal equations. All other numbers are float64, so that the signs of z and
 * g, which determine P, are right down to the rounding of A itself.
 *
 * Workspace of PASSIVE_VECTORS * size + size² / 2 bytes, `size` = bytes of a factor row; f float64 take 2 *
 * size:
 *
 *     z, g, x            2 * size each      by feature
 *     solution           2 * size           z_P, by position in P
 *     inverse, floors    2 * size each      of the Cholesky
 *     state              size               Int32 by feature: ZERO, PASSIVE, or BARRED
 *     members            size               Int32: P, ascending
 *     system             size² / 2          A_PP
 */
import { VECTOR, WORD, multiplyAddDouble } from '../simd';
import { solveCholeskyDouble } from './cholesky-double';

/** States of a feature. A barred feature is zero because rounding hides the sign that it would have in P. */
export const ZERO: i32 = 0;
export const PASSIVE: i32 = 1;
export const BARRED: i32 = 2;

const PASSIVE_VECTORS: usize = 14;

/**
 * A pivot below this fraction of its diagonal element is only rounding error of A: the feature depends
 * linearly on earlier ones.
 */
const DEPENDENT: f64 = 2.384185791015625e-7; // 2^-22

@inline
export function solutionOf(work: usize, size: usize, i: i32): usize {
  return work + ((<usize>i) << 3);
}

@inline
export function gradientOf(work: usize, size: usize, i: i32): usize {
  return work + 2 * size + ((<usize>i) << 3);
}

@inline
export function pointOf(work: usize, size: usize, i: i32): usize {
  return work + 4 * size + ((<usize>i) << 3);
}

@inline
export function stateOf(work: usize, size: usize, i: i32): usize {
  return work + 12 * size + ((<usize>i) << 2);
}

@inline
function membersOf(work: usize, size: usize): usize {
  return work + 13 * size;
}

/** Copies the upper triangle of A, which is valid in whole 4 x 4 blocks, to the lower. */
export function completeSymmetric(matrix: usize, size: usize): void {
  for (let i: usize = 0; i < size; i += VECTOR) {
    const row0 = matrix + (i >> 2) * size;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    store<f32>(row1 + i, load<f32>(row0 + i, 4));
    store<f32>(row2 + i, load<f32>(row0 + i, 8));
    store<f32>(row3 + i, load<f32>(row0 + i, 12));
    store<f32>(row2 + i, load<f32>(row1 + i, 8), 4);
    store<f32>(row3 + i, load<f32>(row1 + i, 12), 4);
    store<f32>(row3 + i, load<f32>(row2 + i, 12), 8);
    for (let j = i + VECTOR; j < size; j += VECTOR) {
      const a = v128.load(row0 + j);
      const b = v128.load(row1 + j);
      const c = v128.load(row2 + j);
      const d = v128.load(row3 + j);
      const abLow = v128.shuffle<f32>(a, b, 0, 4, 1, 5);
      const abHigh = v128.shuffle<f32>(a, b, 2, 6, 3, 7);
      const cdLow = v128.shuffle<f32>(c, d, 0, 4, 1, 5);
      const cdHigh = v128.shuffle<f32>(c, d, 2, 6, 3, 7);
      let target = matrix + (j >> 2) * size + i;
      v128.store(target, v128.shuffle<f32>(abLow, cdLow, 0, 1, 4, 5));
      target += size;
      v128.store(target, v128.shuffle<f32>(abLow, cdLow, 2, 3, 6, 7));
      target += size;
      v128.store(target, v128.shuffle<f32>(abHigh, cdHigh, 0, 1, 4, 5));
      target += size;
      v128.store(target, v128.shuffle<f32>(abHigh, cdHigh, 2, 3, 6, 7));
    }
  }
}

/** Lists P among the first `rank` features; returns its size. */
function listMembers(size: usize, rank: i32, work: usize): i32 {
  const members = membersOf(work, size);
  let count = 0;
  for (let i = 0; i < rank; i++) {
    if (load<i32>(stateOf(work, size, i)) != PASSIVE) continue;
    store<i32>(members + ((<usize>count) << 2), i);
    count++;
  }
  return count;
}

/**
 * Solves A_PP z_P = b_P for the passive set P among the first `rank` features. Returns the size of P. Both
 * triangles of A must be valid.
 */
export function solvePassive(matrix: usize, size: usize, rank: i32, bias: usize, work: usize): i32 {
  const members = membersOf(work, size);
  const solution = work + 6 * size;
  const inverse = work + 8 * size;
  const floors = work + 10 * size;
  const system = work + PASSIVE_VECTORS * size;
  const count = listMembers(size, rank, work);
  const padded = (count + 3) & ~3;
  const stride = (<usize>padded) << 3;
  for (let a = 0; a < padded; a++) {
    const at = (<usize>a) << 3;
    let target = system + <usize>a * stride;
    if (a >= count) {
      // Padding: a row of the identity matrix.
      for (let c = a & ~3; c < padded; c++) store<f64>(target + ((<usize>c) << 3), c == a ? 1 : 0);
      store<f64>(floors + at, 0);
      store<f64>(solution + at, 0);
      continue;
    }
    const i = <usize>load<i32>(members + ((<usize>a) << 2));
    const row = matrix + i * size;
    target += (<usize>(a & ~3)) << 3;
    for (let c = a & ~3; c < padded; c++) {
      const element =
        c < count ? <f64>load<f32>(row + ((<usize>load<i32>(members + ((<usize>c) << 2))) << 2)) : 0;
      store<f64>(target, element);
      target += 8;
    }
    store<f64>(floors + at, DEPENDENT * <f64>load<f32>(row + i * WORD));
    store<f64>(solution + at, <f64>load<f32>(bias + i * WORD));
  }
  solveCholeskyDouble(system, stride, floors, inverse, solution);
  memory.fill(work, 0, 2 * size);
  for (let a = 0; a < count; a++) {
    store<f64>(
      solutionOf(work, size, load<i32>(members + ((<usize>a) << 2))),
      load<f64>(solution + ((<usize>a) << 3)),
    );
  }
  return count;
}

/**
 * g = A z - b for the z of the last solvePassive. `count`: the size of the set, which solvePassive returned.
 */
export function findGradient(matrix: usize, size: usize, bias: usize, count: i32, work: usize): void {
  const members = membersOf(work, size);
  const solution = work + 6 * size;
  for (let j: usize = 0; j < size; j += 2 * VECTOR) {
    const low = v128.load(bias + j);
    const high = v128.load(bias + j, 16);
    let sum0 = f64x2.neg(f64x2.promote_low_f32x4(low));
    let sum1 = f64x2.neg(f64x2.promote_low_f32x4(upperHalf(low)));
    let sum2 = f64x2.neg(f64x2.promote_low_f32x4(high));
    let sum3 = f64x2.neg(f64x2.promote_low_f32x4(upperHalf(high)));
    for (let a = 0; a < count; a++) {
      const row = matrix + <usize>load<i32>(members + ((<usize>a) << 2)) * size + j;
      const factor = v128.load64_splat(solution + ((<usize>a) << 3));
      const left = v128.load(row);
      const right = v128.load(row, 16);
      sum0 = multiplyAddDouble(factor, f64x2.promote_low_f32x4(left), sum0);
      sum1 = multiplyAddDouble(factor, f64x2.promote_low_f32x4(upperHalf(left)), sum1);
      sum2 = multiplyAddDouble(factor, f64x2.promote_low_f32x4(right), sum2);
      sum3 = multiplyAddDouble(factor, f64x2.promote_low_f32x4(upperHalf(right)), sum3);
    }
    const target = work + 2 * size + 2 * j;
    v128.store(target, sum0);
    v128.store(target, sum1, 16);
    v128.store(target, sum2, 32);
    v128.store(target, sum3, 48);
  }
}

@inline
function upperHalf(v: v128): v128 {
  return v128.shuffle<f32>(v, v, 2, 3, 2, 3);
}
