import type { NormalEquations } from './normal-equations.ts';

/**
 * Float64 version of cpu/assembly/solve/conjugate-gradient.ts: cuMF_ALS, Algorithm 1, with the α that its
 * line 5 lacks (r = r - α A p).
 */

const BIAS_TOLERANCE = 1e-10;
const RESIDUAL_TOLERANCE = 1e-12;

export function multiply(matrix: Float64Array, x: Float64Array): Float64Array {
  const rank = x.length;
  return x.map((_, i) => {
    let sum = 0;
    for (let j = 0; j < rank; j++) sum += matrix[i * rank + j] * x[j];
    return sum;
  });
}

export function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/**
 * Takes `steps` steps from `start` and returns x. Ends early if the residual is 0 or too small for float32.
 */
export function conjugateGradient(
  matrix: Float64Array,
  bias: Float64Array,
  start: Float64Array,
  steps: number,
): Float64Array {
  return gradientSteps((x) => multiply(matrix, x), bias, start, steps);
}

/** The same for a matrix that is given by its products with vectors. */
export function gradientSteps(
  times: (x: Float64Array) => Float64Array,
  bias: Float64Array,
  start: Float64Array,
  steps: number,
): Float64Array {
  const x = Float64Array.from(start);
  const product = times(x);
  const r = bias.map((value, i) => value - product[i]);
  const p = Float64Array.from(r);
  let rho = dot(r, r);
  const enough = Math.max(rho * RESIDUAL_TOLERANCE, dot(bias, bias) * BIAS_TOLERANCE);
  if (rho <= enough) return x;
  for (let step = 0; step < steps; step++) {
    const q = times(p);
    const curvature = dot(p, q);
    if (curvature <= 0) break;
    const alpha = rho / curvature;
    for (let i = 0; i < x.length; i++) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    const next = dot(r, r);
    if (next <= enough) break;
    for (let i = 0; i < x.length; i++) p[i] = r[i] + (next / rho) * p[i];
    rho = next;
  }
  return x;
}

/** Twin of cpu/assembly/solve/cholesky.ts in float64. */

/**
 * Returns U of A = UᵀU (rank x rank, row-major, 0 below the diagonal), or undefined if a pivot is not
 * positive.
 */
function factor(matrix: Float64Array, rank: number): Float64Array | undefined {
  const upper = new Float64Array(rank * rank);
  for (let i = 0; i < rank; i++) {
    for (let j = i; j < rank; j++) {
      let sum = matrix[i * rank + j];
      for (let k = 0; k < i; k++) sum -= upper[k * rank + i] * upper[k * rank + j];
      if (i === j && !(sum > 0)) return undefined;
      upper[i * rank + j] = i === j ? Math.sqrt(sum) : sum / upper[i * rank + i];
    }
  }
  return upper;
}

/** x of A x = b; undefined when A is not positive definite. */
export function solveCholesky(matrix: Float64Array, bias: Float64Array): Float64Array | undefined {
  const rank = bias.length;
  const upper = factor(matrix, rank);
  if (upper === undefined) return undefined;
  const x = Float64Array.from(bias);
  for (let i = 0; i < rank; i++) {
    for (let k = 0; k < i; k++) x[i] -= upper[k * rank + i] * x[k];
    x[i] /= upper[i * rank + i];
  }
  for (let i = rank - 1; i >= 0; i--) {
    for (let k = i + 1; k < rank; k++) x[i] -= upper[i * rank + k] * x[k];
    x[i] /= upper[i * rank + i];
  }
  return x;
}

/**
 * Float64 version of cpu/assembly/solve/nonnegative.ts: min ½ xᵀA x - bᵀx over x >= 0, by the active-set
 * method of Lawson and Hanson (1974, chapter 23), one feature at a time. Returns undefined if A is not
 * positive definite.
 */
export function solveNonnegative({ matrix, bias }: NormalEquations): Float64Array | undefined {
  const rank = bias.length;
  const passive = Array.from(bias, () => false);
  const tolerance = 1e-13 * Math.hypot(...bias);
  let x = new Float64Array(rank);
  for (let step = 0; step < 10 * rank + 10; step++) {
    let z = solveAmong(matrix, bias, passive);
    while (z?.some((value) => value < 0)) {
      // Moves x towards z as far as it stays feasible.
      const share = z.reduce(
        (least, value, i) => (value < 0 ? Math.min(least, x[i] / (x[i] - value)) : least),
        1,
      );
      const target = z;
      const next = x.map((value, i) => value + share * (target[i] - value));
      for (let i = 0; i < rank; i++)
        if (target[i] < 0 && x[i] / (x[i] - target[i]) <= share) [passive[i], next[i]] = [false, 0];
      x = next;
      z = solveAmong(matrix, bias, passive);
    }
    if (z === undefined) return undefined;
    x = z;
    const descent = bias.map(
      (value, i) => value - x.reduce((sum, element, j) => sum + matrix[i * rank + j] * element, 0),
    );
    let entering = -1;
    for (let i = 0; i < rank; i++)
      if (!passive[i] && descent[i] > tolerance && !(descent[i] <= descent[entering])) entering = i;
    if (entering < 0) return x;
    passive[entering] = true;
  }
  return undefined;
}

/** The solution among the passive features; the others are 0. */
function solveAmong(
  matrix: Float64Array,
  bias: Float64Array,
  passive: readonly boolean[],
): Float64Array<ArrayBuffer> | undefined {
  const rank = bias.length;
  const members = passive.flatMap((isPassive, i) => (isPassive ? [i] : []));
  const part = Float64Array.from(members.flatMap((i) => members.map((j) => matrix[i * rank + j])));
  const solution = solveCholesky(
    part,
    Float64Array.from(members, (i) => bias[i]),
  );
  const x = new Float64Array(rank);
  if (solution) members.forEach((i, k) => (x[i] = solution[k]));
  return solution && x;
}
