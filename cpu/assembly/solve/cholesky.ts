/**
 * Solves one symmetric positive definite system A x = b by Cholesky, in float32 or float64 (T). Rows have `size`
 * bytes, a multiple of 32.
 *
 *     A = UᵀU     U overwrites the upper triangle, four rows at a time:
 *
 *     for each four rows i:   1. A[i, j] -= Σ_{k < i} U[k, i]ᵀ U[k, j]     register blocks of 4 rows x 32 bytes
 *                             2. the 4 x 4 corner is factored in scalars    (1/U_ii kept in `inverse`)
 *                             3. U[i, j] = corner⁻ᵀ A[i, j]                 for the columns to its right
 *
 * Step 2 is a chain of four square roots and divisions. The blocks of step 1 to the right of the corner do
 * not need its result and follow it in program order, so that an out-of-order core computes them while the
 * chain runs.
 *
 * In float64, which is for passive sets of features (nonnegative.ts), features that depend on earlier ones are
 * left out:
 *
 *     pivot_i <= floor_i:   1 / U_ii = 0, so that row i of U, y_i and x_i are 0
 *
 * Their pivot is only rounding error of A, and x_i would be a quotient of rounding errors.
 */
import { updateBlock } from '../normal-equations';
import { VECTOR, WORD, multiplyAdd, multiplySubtract, sumLanes } from '../simd';

/** target[0..3, 32 bytes] -= Σ over `count` rows of left[0..3]ᵀ right[32 bytes]. */
function subtractBlock<T>(left: usize, right: usize, size: usize, count: i32, target: usize): void {
  updateBlock<T>(left, right, size, count, target, true, true);
}

/** 1 / U_ii; in float64 0 for a pivot that is not above its floor (or NaN). */
@inline
function inverseRoot<T>(pivot: T, floor: usize): T {
  if (sizeof<T>() == 8 && !(pivot > load<T>(floor))) return <T>0;
  return <T>1 / sqrt<T>(pivot);
}

/**
 * Factors A in place, and writes 1 / U_ii to `inverse` (size bytes). `floors`: size bytes, for float64. Returns
 * false if a pivot is not positive or NaN: then A is not positive definite.
 */
export function factor<T>(matrix: usize, size: usize, inverse: usize, floors: usize): bool {
  const E = sizeof<T>();
  let definite = true;
  for (let i: usize = 0; i < size; i += 4 * E) {
    const above = <i32>(i / E);
    const row0 = matrix + (i / E) * size;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    let block = i & ~(<usize>31);
    subtractBlock<T>(matrix + i, matrix + block, size, above, row0 + block);

    // corner: a00 a01 a02 a03 / a11 a12 a13 / a22 a23 / a33
    const corner0 = row0 + i;
    const corner1 = row1 + i;
    const corner2 = row2 + i;
    const corner3 = row3 + i;
    const floor = floors + i;
    const pivot0 = load<T>(corner0);
    const inverse0 = inverseRoot<T>(pivot0, floor);
    const u01 = load<T>(corner0, E) * inverse0;
    const u02 = load<T>(corner0, 2 * E) * inverse0;
    const u03 = load<T>(corner0, 3 * E) * inverse0;
    const pivot1 = load<T>(corner1, E) - u01 * u01;
    const inverse1 = inverseRoot<T>(pivot1, floor + E);
    const u12 = (load<T>(corner1, 2 * E) - u01 * u02) * inverse1;
    const u13 = (load<T>(corner1, 3 * E) - u01 * u03) * inverse1;
    const pivot2 = load<T>(corner2, 2 * E) - u02 * u02 - u12 * u12;
    const inverse2 = inverseRoot<T>(pivot2, floor + 2 * E);
    const u23 = (load<T>(corner2, 3 * E) - u02 * u03 - u12 * u13) * inverse2;
    const pivot3 = load<T>(corner3, 3 * E) - u03 * u03 - u13 * u13 - u23 * u23;
    const inverse3 = inverseRoot<T>(pivot3, floor + 3 * E);
    store<T>(inverse + i, inverse0);
    store<T>(inverse + i, inverse1, E);
    store<T>(inverse + i, inverse2, 2 * E);
    store<T>(inverse + i, inverse3, 3 * E);

    for (block += 2 * VECTOR; block < size; block += 2 * VECTOR)
      subtractBlock<T>(matrix + i, matrix + block, size, above, row0 + block);
    if (!(pivot0 > 0 && pivot1 > 0 && pivot2 > 0 && pivot3 > 0)) definite = false;

    const scale0 = v128.splat<T>(inverse0);
    const scale1 = v128.splat<T>(inverse1);
    const scale2 = v128.splat<T>(inverse2);
    const scale3 = v128.splat<T>(inverse3);
    const factor01 = v128.splat<T>(u01);
    const factor02 = v128.splat<T>(u02);
    const factor03 = v128.splat<T>(u03);
    const factor12 = v128.splat<T>(u12);
    const factor13 = v128.splat<T>(u13);
    const factor23 = v128.splat<T>(u23);
    for (let j = i; j < size; j += VECTOR) {
      const u0 = v128.mul<T>(v128.load(row0 + j), scale0);
      const u1 = v128.mul<T>(multiplySubtract<T>(factor01, u0, v128.load(row1 + j)), scale1);
      let rest = multiplySubtract<T>(factor02, u0, v128.load(row2 + j));
      const u2 = v128.mul<T>(multiplySubtract<T>(factor12, u1, rest), scale2);
      rest = multiplySubtract<T>(factor13, u1, multiplySubtract<T>(factor03, u0, v128.load(row3 + j)));
      const u3 = v128.mul<T>(multiplySubtract<T>(factor23, u2, rest), scale3);
      v128.store(row0 + j, u0);
      v128.store(row1 + j, u1);
      v128.store(row2 + j, u2);
      v128.store(row3 + j, u3);
    }
  }
  return definite;
}

/** a - (b + c + d) in float64, where the models of `nonnegative` have this order; a - b - c - d in float32. */
@inline
function subtractThree<T>(a: T, b: T, c: T, d: T): T {
  return sizeof<T>() == 8 ? a - (b + c + d) : a - b - c - d;
}

/** Uᵀy = b, four rows at a time: y is written over b. */
function substituteForward<T>(matrix: usize, size: usize, inverse: usize, b: usize): void {
  const E = sizeof<T>();
  for (let i: usize = 0; i < size; i += 4 * E) {
    const row0 = matrix + (i / E) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const d = inverse + i;
    const part = b + i;
    const y0 = load<T>(part) * load<T>(d);
    const y1 = (load<T>(part, E) - load<T>(row0, E) * y0) * load<T>(d, E);
    const y2 =
      (load<T>(part, 2 * E) - load<T>(row0, 2 * E) * y0 - load<T>(row1, 2 * E) * y1) * load<T>(d, 2 * E);
    const rest3 = subtractThree<T>(
      load<T>(part, 3 * E),
      load<T>(row0, 3 * E) * y0,
      load<T>(row1, 3 * E) * y1,
      load<T>(row2, 3 * E) * y2,
    );
    const y3 = rest3 * load<T>(d, 3 * E);
    store<T>(part, y0);
    store<T>(part, y1, E);
    store<T>(part, y2, 2 * E);
    store<T>(part, y3, 3 * E);
    const all0 = v128.splat<T>(y0);
    const all1 = v128.splat<T>(y1);
    const all2 = v128.splat<T>(y2);
    const all3 = v128.splat<T>(y3);
    for (let j: usize = 4 * E; j < size - i; j += VECTOR) {
      let rest = multiplySubtract<T>(all0, v128.load(row0 + j), v128.load(part + j));
      rest = multiplySubtract<T>(all1, v128.load(row1 + j), rest);
      rest = multiplySubtract<T>(all2, v128.load(row2 + j), rest);
      v128.store(part + j, multiplySubtract<T>(all3, v128.load(row3 + j), rest));
    }
  }
}

/** The sum of the lanes of a vector, in the order of sumLanes. */
@inline
function sumOf<T>(v: v128): T {
  if (sizeof<T>() == 4) return <T>sumLanes(v);
  return <T>(f64x2.extract_lane(v, 0) + f64x2.extract_lane(v, 1));
}

/** U x = y, from the last four rows up. `x` may be `y`. */
function substituteBackward<T>(matrix: usize, size: usize, inverse: usize, y: usize, x: usize): void {
  const E = sizeof<T>();
  for (let i = size; i > 0;) {
    i -= 4 * E;
    const row0 = matrix + (i / E) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const d = inverse + i;
    const part = x + i;
    let sum0 = v128.splat<T>(0);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    for (let j: usize = 4 * E; j < size - i; j += VECTOR) {
      const known = v128.load(part + j);
      sum0 = multiplyAdd<T>(v128.load(row0 + j), known, sum0);
      sum1 = multiplyAdd<T>(v128.load(row1 + j), known, sum1);
      sum2 = multiplyAdd<T>(v128.load(row2 + j), known, sum2);
      sum3 = multiplyAdd<T>(v128.load(row3 + j), known, sum3);
    }
    const x3 = (load<T>(y + i, 3 * E) - sumOf<T>(sum3)) * load<T>(d, 3 * E);
    const rest2 = load<T>(y + i, 2 * E) - sumOf<T>(sum2) - load<T>(row2, 3 * E) * x3;
    const x2 = rest2 * load<T>(d, 2 * E);
    const rest1 =
      load<T>(y + i, E) - sumOf<T>(sum1) - load<T>(row1, 2 * E) * x2 - load<T>(row1, 3 * E) * x3;
    const x1 = rest1 * load<T>(d, E);
    const rest0 = subtractThree<T>(
      load<T>(y + i) - sumOf<T>(sum0),
      load<T>(row0, E) * x1,
      load<T>(row0, 2 * E) * x2,
      load<T>(row0, 3 * E) * x3,
    );
    store<T>(part, rest0 * load<T>(d));
    store<T>(part, x1, E);
    store<T>(part, x2, 2 * E);
    store<T>(part, x3, 3 * E);
  }
}

/** Solves A x = b; A and b are overwritten. `inverse`: size bytes. False when A is not positive definite. */
export function solveCholesky(matrix: usize, size: usize, b: usize, x: usize, inverse: usize): bool {
  const definite = factor<f32>(matrix, size, inverse, 0);
  substituteForward<f32>(matrix, size, inverse, b);
  substituteBackward<f32>(matrix, size, inverse, b, x);
  return definite;
}

/** Solves A x = b in float64, without features that depend on others; A is overwritten, and b by x. */
export function solvePivots(matrix: usize, size: usize, floors: usize, inverse: usize, b: usize): void {
  factor<f64>(matrix, size, inverse, floors);
  substituteForward<f64>(matrix, size, inverse, b);
  substituteBackward<f64>(matrix, size, inverse, b, b);
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
