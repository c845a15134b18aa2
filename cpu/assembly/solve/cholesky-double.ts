/**
 * Cholesky A = UᵀU in float64 for a passive set of features: A is n x n, n a multiple of 4,
 * with rows of `stride` = 8 n bytes. It proceeds as cholesky.ts does, with blocks of 4 x 4. Features that
 * depend on earlier ones are left out:
 *
 *     pivot_i <= floor_i:   1 / U_ii = 0, so that row i of U, y_i and x_i are 0
 *
 * Their pivot is only rounding error of A, and x_i would be a quotient of rounding errors.
 */
import { VECTOR, multiplyAddDouble, multiplySubtractDouble, sumLanesDouble } from '../simd';

/** Bytes of four float64. */
const FOUR: usize = 32;

/** target[0..3, 0..3] -= Σ over `count` rows of left[0..3]ᵀ right[0..3]. */
function subtractBlock(left: usize, right: usize, stride: usize, count: i32, target: usize): void {
  const target1 = target + stride;
  const target2 = target1 + stride;
  const target3 = target2 + stride;
  let sum00 = v128.load(target);
  let sum01 = v128.load(target, 16);
  let sum10 = v128.load(target1);
  let sum11 = v128.load(target1, 16);
  let sum20 = v128.load(target2);
  let sum21 = v128.load(target2, 16);
  let sum30 = v128.load(target3);
  let sum31 = v128.load(target3, 16);
  for (let k = 0; k < count; k++) {
    const right0 = v128.load(right);
    const right1 = v128.load(right, 16);
    let element = v128.load64_splat(left);
    sum00 = multiplySubtractDouble(element, right0, sum00);
    sum01 = multiplySubtractDouble(element, right1, sum01);
    element = v128.load64_splat(left, 8);
    sum10 = multiplySubtractDouble(element, right0, sum10);
    sum11 = multiplySubtractDouble(element, right1, sum11);
    element = v128.load64_splat(left, 16);
    sum20 = multiplySubtractDouble(element, right0, sum20);
    sum21 = multiplySubtractDouble(element, right1, sum21);
    element = v128.load64_splat(left, 24);
    sum30 = multiplySubtractDouble(element, right0, sum30);
    sum31 = multiplySubtractDouble(element, right1, sum31);
    left += stride;
    right += stride;
  }
  v128.store(target, sum00);
  v128.store(target, sum01, 16);
  v128.store(target1, sum10);
  v128.store(target1, sum11, 16);
  v128.store(target2, sum20);
  v128.store(target2, sum21, 16);
  v128.store(target3, sum30);
  v128.store(target3, sum31, 16);
}

/** 1 / U_ii, or 0 for a pivot that is not above its floor (or NaN). */
@inline
function inverseRoot(pivot: f64, floor: f64): f64 {
  return pivot > floor ? 1 / sqrt<f64>(pivot) : 0;
}

/** Factors A in place; `floors` and `inverse`: n float64. Only the upper triangle is read. */
function factor(matrix: usize, stride: usize, floors: usize, inverse: usize): void {
  for (let i: usize = 0; i < stride; i += FOUR) {
    const above = <i32>(i >> 3);
    const row0 = matrix + (i >> 3) * stride;
    const row1 = row0 + stride;
    const row2 = row1 + stride;
    const row3 = row2 + stride;
    for (let j = i; j < stride; j += FOUR) subtractBlock(matrix + i, matrix + j, stride, above, row0 + j);

    const corner1 = row1 + i;
    const corner2 = row2 + i;
    const inverse0 = inverseRoot(load<f64>(row0 + i), load<f64>(floors + i));
    const u01 = load<f64>(row0 + i, 8) * inverse0;
    const u02 = load<f64>(row0 + i, 16) * inverse0;
    const u03 = load<f64>(row0 + i, 24) * inverse0;
    const inverse1 = inverseRoot(load<f64>(corner1, 8) - u01 * u01, load<f64>(floors + i, 8));
    const u12 = (load<f64>(corner1, 16) - u01 * u02) * inverse1;
    const u13 = (load<f64>(corner1, 24) - u01 * u03) * inverse1;
    const inverse2 = inverseRoot(load<f64>(corner2, 16) - u02 * u02 - u12 * u12, load<f64>(floors + i, 16));
    const u23 = (load<f64>(corner2, 24) - u02 * u03 - u12 * u13) * inverse2;
    const inverse3 = inverseRoot(
      load<f64>(row3 + i, 24) - u03 * u03 - u13 * u13 - u23 * u23,
      load<f64>(floors + i, 24),
    );
    store<f64>(inverse + i, inverse0);
    store<f64>(inverse + i, inverse1, 8);
    store<f64>(inverse + i, inverse2, 16);
    store<f64>(inverse + i, inverse3, 24);

    for (let j = i; j < stride; j += VECTOR) {
      const u0 = f64x2.mul(v128.load(row0 + j), f64x2.splat(inverse0));
      const u1 = f64x2.mul(
        multiplySubtractDouble(f64x2.splat(u01), u0, v128.load(row1 + j)),
        f64x2.splat(inverse1),
      );
      let rest = multiplySubtractDouble(f64x2.splat(u02), u0, v128.load(row2 + j));
      const u2 = f64x2.mul(multiplySubtractDouble(f64x2.splat(u12), u1, rest), f64x2.splat(inverse2));
      rest = multiplySubtractDouble(
        f64x2.splat(u13),
        u1,
        multiplySubtractDouble(f64x2.splat(u03), u0, v128.load(row3 + j)),
      );
      const u3 = f64x2.mul(multiplySubtractDouble(f64x2.splat(u23), u2, rest), f64x2.splat(inverse3));
      v128.store(row0 + j, u0);
      v128.store(row1 + j, u1);
      v128.store(row2 + j, u2);
      v128.store(row3 + j, u3);
    }
  }
}

/** Uᵀy = b, four rows at a time: y is written over b. */
function substituteForward(matrix: usize, stride: usize, inverse: usize, b: usize): void {
  for (let i: usize = 0; i < stride; i += FOUR) {
    const row0 = matrix + (i >> 3) * stride + i;
    const row1 = row0 + stride;
    const row2 = row1 + stride;
    const row3 = row2 + stride;
    const d = inverse + i;
    const part = b + i;
    const y0 = load<f64>(part) * load<f64>(d);
    const y1 = (load<f64>(part, 8) - load<f64>(row0, 8) * y0) * load<f64>(d, 8);
    const y2 = (load<f64>(part, 16) - load<f64>(row0, 16) * y0 - load<f64>(row1, 16) * y1) * load<f64>(d, 16);
    const known = load<f64>(row0, 24) * y0 + load<f64>(row1, 24) * y1 + load<f64>(row2, 24) * y2;
    const y3 = (load<f64>(part, 24) - known) * load<f64>(d, 24);
    store<f64>(part, y0);
    store<f64>(part, y1, 8);
    store<f64>(part, y2, 16);
    store<f64>(part, y3, 24);
    for (let j = FOUR; j < stride - i; j += VECTOR) {
      let rest = multiplySubtractDouble(f64x2.splat(y0), v128.load(row0 + j), v128.load(part + j));
      rest = multiplySubtractDouble(f64x2.splat(y1), v128.load(row1 + j), rest);
      rest = multiplySubtractDouble(f64x2.splat(y2), v128.load(row2 + j), rest);
      v128.store(part + j, multiplySubtractDouble(f64x2.splat(y3), v128.load(row3 + j), rest));
    }
  }
}

/** U x = y, from the last four rows up: x is written over y. */
function substituteBackward(matrix: usize, stride: usize, inverse: usize, y: usize): void {
  for (let i = stride; i > 0;) {
    i -= FOUR;
    const row0 = matrix + (i >> 3) * stride + i;
    const row1 = row0 + stride;
    const row2 = row1 + stride;
    const row3 = row2 + stride;
    const d = inverse + i;
    const part = y + i;
    let sum0 = f64x2.splat(0);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    for (let j = FOUR; j < stride - i; j += VECTOR) {
      const known = v128.load(part + j);
      sum0 = multiplyAddDouble(v128.load(row0 + j), known, sum0);
      sum1 = multiplyAddDouble(v128.load(row1 + j), known, sum1);
      sum2 = multiplyAddDouble(v128.load(row2 + j), known, sum2);
      sum3 = multiplyAddDouble(v128.load(row3 + j), known, sum3);
    }
    const x3 = (load<f64>(part, 24) - sumLanesDouble(sum3)) * load<f64>(d, 24);
    const x2 = (load<f64>(part, 16) - sumLanesDouble(sum2) - load<f64>(row2, 24) * x3) * load<f64>(d, 16);
    const x1 =
      (load<f64>(part, 8) - sumLanesDouble(sum1) - load<f64>(row1, 16) * x2 - load<f64>(row1, 24) * x3) *
      load<f64>(d, 8);
    const known = load<f64>(row0, 8) * x1 + load<f64>(row0, 16) * x2 + load<f64>(row0, 24) * x3;
    store<f64>(part, (load<f64>(part) - sumLanesDouble(sum0) - known) * load<f64>(d));
    store<f64>(part, x1, 8);
    store<f64>(part, x2, 16);
    store<f64>(part, x3, 24);
  }
}

/** Solves A x = b; A is overwritten, and b by x. `floors` and `inverse` (work): n float64 each. */
export function solveCholeskyDouble(
  matrix: usize,
  stride: usize,
  floors: usize,
  inverse: usize,
  b: usize,
): void {
  factor(matrix, stride, floors, inverse);
  substituteForward(matrix, stride, inverse, b);
  substituteBackward(matrix, stride, inverse, b);
}
