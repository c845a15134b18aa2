/**
 * The non-negative least squares problem of one row, given its normal equations (Spark ML's ALS with
 * nonnegative = true):
 *
 *     min ½ xᵀA x - bᵀx   with x >= 0
 *
 * x is the minimum when, with g = A x - b, each feature has either x_i > 0 and g_i = 0, or x_i = 0 and g_i >=
 * 0. Features that may differ from zero form the passive set P, on which x solves A_PP x_P = b_P exactly.
 * P is found in two steps:
 *
 * 1. Block principal pivoting from P = {previous_i > 0}: all features with the wrong sign change sides at
 *    once, as long as their number falls; PATIENCE steps without a new minimum are allowed. Usually 2 to 6
 *    steps at any rank, fewer from a good start. (J. Kim and H. Park, Fast nonnegative matrix factorization:
 *    an active-set-like method and comparisons, SIAM J. Sci. Comput. 33, 2011; after Portugal, Júdice and
 *    Vicente, 1994.)
 * 2. Where step 1 cycles, as it may when A is almost singular: the active-set method from x = 0, one feature
 *    a step, whose objective falls with every step (C. Lawson and R. Hanson, Solving Least Squares Problems,
 *    1974, chapter 23). It replaces Kim and Park's backup rule, which needs hundreds of steps there.
 *
 * The stopping rule: no feature below 0, and no g_i of a feature at 0 below -1e-6 ‖b‖. After step 2 the limit
 * is -1e-4 ‖b‖, A's rounding, for features that depend on others of P to within float32, and for barred ones.
 * A row becomes NaN if the second method needs more than about 3 f + 20 steps, for f features. Each retreat is
 * a step.
 */
import { VECTOR, WORD, multiplyAdd } from '../simd';
import { allFinite } from '../vectors';
import { solvePivots } from './cholesky';

/**
 * Solves and checks the equations of a passive set P: the features that may differ from zero. The others are zero.
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
  solvePivots(system, stride, floors, inverse, solution);
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
      sum0 = multiplyAdd<f64>(factor, f64x2.promote_low_f32x4(left), sum0);
      sum1 = multiplyAdd<f64>(factor, f64x2.promote_low_f32x4(upperHalf(left)), sum1);
      sum2 = multiplyAdd<f64>(factor, f64x2.promote_low_f32x4(right), sum2);
      sum3 = multiplyAdd<f64>(factor, f64x2.promote_low_f32x4(upperHalf(right)), sum3);
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

/** Limits of g_i relative to ‖b‖. */
const TOLERANCE: f64 = 1e-6;
const DEPENDENT_TOLERANCE: f64 = 1e-4;

/**
 * Most consecutive steps of block pivoting without a new minimum of the number of features with the wrong
 * sign.
 */
const PATIENCE: i32 = 3;

function norm(b: usize, rank: i32): f64 {
  let sum: f64 = 0;
  for (let i = 0; i < rank; i++) {
    const element = <f64>load<f32>(b + <usize>i * WORD);
    sum += element * element;
  }
  return sqrt<f64>(sum);
}

/**
 * True if feature i violates its condition, or is NaN. A z that is not 0 must be positive. If z is 0, the
 * gradient must not be below `least`; z is also 0 for a feature of the passive set that the solver left out
 * because it depends on others.
 */
@inline
function isMisplaced(work: usize, size: usize, i: i32, least: f64): bool {
  const z = load<f64>(solutionOf(work, size, i));
  return z != 0 ? !(z > 0) : !(load<f64>(gradientOf(work, size, i)) >= least);
}

/**
 * True if all features at 0, also those that the solver left out as dependent, have a gradient of at least
 * `least`.
 */
function isSettled(size: usize, rank: i32, work: usize, least: f64): bool {
  for (let i = 0; i < rank; i++) {
    if (load<f64>(solutionOf(work, size, i)) == 0 && !(load<f64>(gradientOf(work, size, i)) >= least))
      return false;
  }
  return true;
}

/** Step 1, block principal pivoting: true if z is the solution. */
function pivotBlocks(matrix: usize, size: usize, rank: i32, bias: usize, work: usize, least: f64): bool {
  let fewest = rank + 1;
  let patience = PATIENCE;
  while (patience >= 0) {
    const count = solvePassive(matrix, size, rank, bias, work);
    findGradient(matrix, size, bias, count, work);
    let misplaced = 0;
    for (let i = 0; i < rank; i++) misplaced += <i32>isMisplaced(work, size, i, least);
    if (misplaced == 0) return true;
    if (misplaced < fewest) {
      fewest = misplaced;
      patience = PATIENCE;
    } else {
      patience--;
    }
    for (let i = 0; i < rank; i++) {
      const state = stateOf(work, size, i);
      if (isMisplaced(work, size, i, least)) store<i32>(state, load<i32>(state) == PASSIVE ? ZERO : PASSIVE);
    }
  }
  return false;
}

/** The feature outside P whose growth lowers the objective fastest, or -1. */
function steepest(size: usize, rank: i32, work: usize, least: f64): i32 {
  let found = -1;
  for (let i = 0; i < rank; i++) {
    const gradient = load<f64>(gradientOf(work, size, i));
    if (load<i32>(stateOf(work, size, i)) != ZERO || !(gradient < least)) continue;
    least = gradient;
    found = i;
  }
  return found;
}

/**
 * Moves x towards z until a feature reaches 0, and removes features at 0 from P. Returns false, and does not
 * move x, if no z is negative.
 */
function retreat(size: usize, rank: i32, work: usize): bool {
  let step: f64 = 1;
  let feasible = true;
  for (let i = 0; i < rank; i++) {
    const z = load<f64>(solutionOf(work, size, i));
    if (!(z < 0)) continue;
    const x = load<f64>(pointOf(work, size, i));
    step = min(step, x / (x - z));
    feasible = false;
  }
  if (feasible) return false;
  for (let i = 0; i < rank; i++) {
    const point = pointOf(work, size, i);
    const x = load<f64>(point);
    const z = load<f64>(solutionOf(work, size, i));
    const stopped = z < 0 && x / (x - z) <= step;
    store<f64>(point, stopped ? 0 : x + step * (z - x));
    if (stopped) store<i32>(stateOf(work, size, i), ZERO);
  }
  return true;
}

/** Accepts z: x = z, and barred features may be tried again. */
function advance(size: usize, rank: i32, work: usize): void {
  memory.copy(pointOf(work, size, 0), solutionOf(work, size, 0), 2 * size);
  for (let i = 0; i < rank; i++) {
    const state = stateOf(work, size, i);
    if (load<i32>(state) == BARRED) store<i32>(state, ZERO);
  }
}

/** Step 2, the active-set method: true if z is the solution. */
function pivotSingly(matrix: usize, size: usize, rank: i32, bias: usize, work: usize, least: f64): bool {
  for (let i = 0; i < rank; i++) store<i32>(stateOf(work, size, i), ZERO);
  let count = solvePassive(matrix, size, rank, bias, work);
  for (let left = 3 * rank + 20; left > 0; left--) {
    advance(size, rank, work);
    findGradient(matrix, size, bias, count, work);
    let entering = -1;
    for (;;) {
      entering = steepest(size, rank, work, least);
      if (entering < 0) break;
      store<i32>(stateOf(work, size, entering), PASSIVE);
      count = solvePassive(matrix, size, rank, bias, work);
      if (load<f64>(solutionOf(work, size, entering)) > 0) break;
      store<i32>(stateOf(work, size, entering), BARRED);
    }
    if (entering < 0) {
      // Attempts to add a feature may have changed z: restores the accepted one.
      memory.copy(solutionOf(work, size, 0), pointOf(work, size, 0), 2 * size);
      return true;
    }
    while (retreat(size, rank, work)) {
      count = solvePassive(matrix, size, rank, bias, work);
      left--;
    }
  }
  return false;
}

/**
 * Solves one row. On entry A has its upper triangle, with λ n on the diagonal; its lower triangle is filled
 * in. `x` may be the same address as `previous`. work: 14 * size + size² / 2 bytes. If there is no finite
 * solution, returns false and x = NaN.
 */
export function solveNonnegative(
  matrix: usize,
  size: usize,
  rank: i32,
  bias: usize,
  x: usize,
  previous: usize,
  work: usize,
): bool {
  const length = norm(bias, rank);
  const least = -TOLERANCE * length;
  completeSymmetric(matrix, size);
  for (let i = 0; i < rank; i++) {
    const starts = load<f32>(previous + <usize>i * WORD) > 0;
    store<i32>(stateOf(work, size, i), starts ? PASSIVE : ZERO);
  }
  let solved = length < Infinity;
  if (solved) {
    solved =
      pivotBlocks(matrix, size, rank, bias, work, least) ||
      pivotSingly(matrix, size, rank, bias, work, least);
    solved = solved && isSettled(size, rank, work, -DEPENDENT_TOLERANCE * length);
  }
  memory.fill(x, 0, size);
  for (let i = 0; i < rank; i++)
    store<f32>(x + <usize>i * WORD, solved ? <f32>load<f64>(solutionOf(work, size, i)) : <f32>NaN);
  return solved && allFinite(x, size);
}
