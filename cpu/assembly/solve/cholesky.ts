/**
 * Solves one symmetric positive definite system A x = b by Cholesky. Rows have `size` = 4 * n bytes, n a
 * multiple of 8.
 *
 *     A = UᵀU     U overwrites the upper triangle, four rows at a time:
 *
 *     for each four rows i:   1. A[i, j] -= Σ_{k < i} U[k, i]ᵀ U[k, j]     4 x 8 register blocks over all rows above
 *                             2. the 4 x 4 corner is factored in scalars    (1/U_ii kept in `inverse`)
 *                             3. U[i, j] = corner⁻ᵀ A[i, j]                 for the columns to its right
 *
 * Step 2 is a chain of four square roots and divisions. The blocks of step 1 to the right of the corner do
 * not need its result and follow it in program order, so that an out-of-order core computes them while the
 * chain runs.
 */
import { VECTOR, WORD, multiplyAdd, multiplySubtract, sumLanes } from '../simd';

/** target[0..3, 0..7] -= Σ over `count` rows of left[0..3]ᵀ right[0..7]. */
function subtractBlock(left: usize, right: usize, size: usize, count: i32, target: usize): void {
  const target1 = target + size;
  const target2 = target1 + size;
  const target3 = target2 + size;
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
    let element = v128.load32_splat(left);
    sum00 = multiplySubtract(element, right0, sum00);
    sum01 = multiplySubtract(element, right1, sum01);
    element = v128.load32_splat(left, 4);
    sum10 = multiplySubtract(element, right0, sum10);
    sum11 = multiplySubtract(element, right1, sum11);
    element = v128.load32_splat(left, 8);
    sum20 = multiplySubtract(element, right0, sum20);
    sum21 = multiplySubtract(element, right1, sum21);
    element = v128.load32_splat(left, 12);
    sum30 = multiplySubtract(element, right0, sum30);
    sum31 = multiplySubtract(element, right1, sum31);
    left += size;
    right += size;
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

/**
 * Factors A in place, and writes 1 / U_ii to `inverse` (size bytes). Returns false if a pivot is not positive
 * or NaN: then A is not positive definite.
 */
export function factor(matrix: usize, size: usize, inverse: usize): bool {
  let definite = true;
  for (let i: usize = 0; i < size; i += VECTOR) {
    const above = <i32>(i >> 2);
    const row0 = matrix + (i >> 2) * size;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    let block = i & ~(<usize>31);
    subtractBlock(matrix + i, matrix + block, size, above, row0 + block);

    // corner: a00 a01 a02 a03 / a11 a12 a13 / a22 a23 / a33
    const corner0 = row0 + i;
    const corner1 = row1 + i;
    const corner2 = row2 + i;
    const corner3 = row3 + i;
    const pivot0 = load<f32>(corner0);
    const inverse0: f32 = 1 / sqrt<f32>(pivot0);
    const u01 = load<f32>(corner0, 4) * inverse0;
    const u02 = load<f32>(corner0, 8) * inverse0;
    const u03 = load<f32>(corner0, 12) * inverse0;
    const pivot1 = load<f32>(corner1, 4) - u01 * u01;
    const inverse1: f32 = 1 / sqrt<f32>(pivot1);
    const u12 = (load<f32>(corner1, 8) - u01 * u02) * inverse1;
    const u13 = (load<f32>(corner1, 12) - u01 * u03) * inverse1;
    const pivot2 = load<f32>(corner2, 8) - u02 * u02 - u12 * u12;
    const inverse2: f32 = 1 / sqrt<f32>(pivot2);
    const u23 = (load<f32>(corner2, 12) - u02 * u03 - u12 * u13) * inverse2;
    const pivot3 = load<f32>(corner3, 12) - u03 * u03 - u13 * u13 - u23 * u23;
    const inverse3: f32 = 1 / sqrt<f32>(pivot3);
    store<f32>(inverse + i, inverse0);
    store<f32>(inverse + i, inverse1, 4);
    store<f32>(inverse + i, inverse2, 8);
    store<f32>(inverse + i, inverse3, 12);

    for (block += 2 * VECTOR; block < size; block += 2 * VECTOR)
      subtractBlock(matrix + i, matrix + block, size, above, row0 + block);
    if (!(pivot0 > 0 && pivot1 > 0 && pivot2 > 0 && pivot3 > 0)) definite = false;

    const scale0 = f32x4.splat(inverse0);
    const scale1 = f32x4.splat(inverse1);
    const scale2 = f32x4.splat(inverse2);
    const scale3 = f32x4.splat(inverse3);
    const factor01 = f32x4.splat(u01);
    const factor02 = f32x4.splat(u02);
    const factor03 = f32x4.splat(u03);
    const factor12 = f32x4.splat(u12);
    const factor13 = f32x4.splat(u13);
    const factor23 = f32x4.splat(u23);
    for (let j = i; j < size; j += VECTOR) {
      const u0 = f32x4.mul(v128.load(row0 + j), scale0);
      const u1 = f32x4.mul(multiplySubtract(factor01, u0, v128.load(row1 + j)), scale1);
      const rest2 = multiplySubtract(factor12, u1, multiplySubtract(factor02, u0, v128.load(row2 + j)));
      const u2 = f32x4.mul(rest2, scale2);
      const rest3 = multiplySubtract(factor13, u1, multiplySubtract(factor03, u0, v128.load(row3 + j)));
      const u3 = f32x4.mul(multiplySubtract(factor23, u2, rest3), scale3);
      v128.store(row0 + j, u0);
      v128.store(row1 + j, u1);
      v128.store(row2 + j, u2);
      v128.store(row3 + j, u3);
    }
  }
  return definite;
}

/** Uᵀy = b, four rows at a time: y is written over b. */
function substituteForward(matrix: usize, size: usize, inverse: usize, b: usize): void {
  for (let i: usize = 0; i < size; i += VECTOR) {
    const row0 = matrix + (i >> 2) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const d = inverse + i;
    const part = b + i;
    const y0 = load<f32>(part) * load<f32>(d);
    const y1 = (load<f32>(part, 4) - load<f32>(row0, 4) * y0) * load<f32>(d, 4);
    const y2 = (load<f32>(part, 8) - load<f32>(row0, 8) * y0 - load<f32>(row1, 8) * y1) * load<f32>(d, 8);
    const y3 =
      (load<f32>(part, 12) - load<f32>(row0, 12) * y0 - load<f32>(row1, 12) * y1 - load<f32>(row2, 12) * y2) *
      load<f32>(d, 12);
    store<f32>(part, y0);
    store<f32>(part, y1, 4);
    store<f32>(part, y2, 8);
    store<f32>(part, y3, 12);
    const all0 = f32x4.splat(y0);
    const all1 = f32x4.splat(y1);
    const all2 = f32x4.splat(y2);
    const all3 = f32x4.splat(y3);
    for (let j: usize = VECTOR; j < size - i; j += VECTOR) {
      let rest = multiplySubtract(all0, v128.load(row0 + j), v128.load(part + j));
      rest = multiplySubtract(all1, v128.load(row1 + j), rest);
      rest = multiplySubtract(all2, v128.load(row2 + j), rest);
      v128.store(part + j, multiplySubtract(all3, v128.load(row3 + j), rest));
    }
  }
}

/** U x = y, from the last four rows up. */
function substituteBackward(matrix: usize, size: usize, inverse: usize, y: usize, x: usize): void {
  for (let i = size; i > 0;) {
    i -= VECTOR;
    const row0 = matrix + (i >> 2) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const d = inverse + i;
    const part = x + i;
    let sum0 = f32x4.splat(0);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    for (let j: usize = VECTOR; j < size - i; j += VECTOR) {
      const known = v128.load(part + j);
      sum0 = multiplyAdd(v128.load(row0 + j), known, sum0);
      sum1 = multiplyAdd(v128.load(row1 + j), known, sum1);
      sum2 = multiplyAdd(v128.load(row2 + j), known, sum2);
      sum3 = multiplyAdd(v128.load(row3 + j), known, sum3);
    }
    const x3 = (load<f32>(y + i, 12) - sumLanes(sum3)) * load<f32>(d, 12);
    const x2 = (load<f32>(y + i, 8) - sumLanes(sum2) - load<f32>(row2, 12) * x3) * load<f32>(d, 8);
    const x1 =
      (load<f32>(y + i, 4) - sumLanes(sum1) - load<f32>(row1, 8) * x2 - load<f32>(row1, 12) * x3) *
      load<f32>(d, 4);
    const x0 =
      (load<f32>(y + i) -
        sumLanes(sum0) -
        load<f32>(row0, 4) * x1 -
        load<f32>(row0, 8) * x2 -
        load<f32>(row0, 12) * x3) *
      load<f32>(d);
    store<f32>(part, x0);
    store<f32>(part, x1, 4);
    store<f32>(part, x2, 8);
    store<f32>(part, x3, 12);
  }
}

/** Solves A x = b; A and b are overwritten. `inverse`: size bytes. False when A is not positive definite. */
export function solveCholesky(matrix: usize, size: usize, b: usize, x: usize, inverse: usize): bool {
  const definite = factor(matrix, size, inverse);
  substituteForward(matrix, size, inverse, b);
  substituteBackward(matrix, size, inverse, b, x);
  return definite;
}

/**
 * A's float32 rounding error is at most about this times √f times the largest diagonal element of A. A shift
 * of this size keeps A positive definite.
 */
const ROUNDING: f32 = 5e-6;

/**
 * Returns the shift that an exact solve adds to A's diagonal: `shift`, but at least A's rounding error, so
 * that A is positive definite in float32. This changes A by no more than its rounding. A negative shift is
 * returned as it is. If A and `shift` are 0, the result is 1, and so x = 0.
 */
export function definiteShift(matrix: usize, size: usize, rank: i32, shift: f32): f32 {
  if (shift < 0) return shift;
  const step = size + WORD;
  let largest: f32 = 0;
  for (let i = 0; i < rank; i++) largest = max(largest, load<f32>(matrix + <usize>i * step));
  if (largest == 0 && shift == 0) return 1;
  return max(shift, ROUNDING * sqrt<f32>(<f32>rank) * largest);
}

/**
 * Adds `value` to the first `rank` elements of the diagonal, and 1 to the padding's, so that A stays
 * definite.
 */
export function addDiagonal(matrix: usize, size: usize, rank: i32, value: f32): void {
  const step = size + WORD;
  const columns = <i32>(size >> 2);
  let element = matrix;
  for (let i = 0; i < rank; i++) {
    store<f32>(element, load<f32>(element) + value);
    element += step;
  }
  for (let i = rank; i < columns; i++) {
    store<f32>(element, load<f32>(element) + 1);
    element += step;
  }
}
