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
