/**
 * The non-negative least squares problem of one row, given its normal equations (Spark ML's ALS with
 * nonnegative = true):
 *
 *     min ½ xᵀA x - bᵀx   with x >= 0
 *
 * x is the minimum when, with g = A x - b, each feature has either x_i > 0 and g_i = 0, or x_i = 0 and g_i >=
 * 0. Features that may differ from zero form the passive set P, on which x solves A_PP x_P = b_P exactly
 * (passive-set.ts). P is found in two steps:
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
 * is -1e-4 ‖b‖, A's rounding, for features that depend on others of P to within float32, and for barred ones
 * (passive-set.ts). A row becomes NaN if it does not meet the rule in about 3 f + 20 steps of the second
 * method, where f is the number of features and each retreat is a step.
 */
import { WORD } from '../simd';
import {
  BARRED,
  PASSIVE,
  ZERO,
  completeSymmetric,
  findGradient,
  gradientOf,
  pointOf,
  solutionOf,
  solvePassive,
  stateOf,
} from './passive-set';
import { allFinite } from '../vectors';

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
