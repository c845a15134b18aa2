/** Minima over x >= 0, compared with the twin in float64. */
import { leftOfBias } from '../../../cpu/reference/biased.ts';
import { multiply } from '../../../cpu/reference/conjugate-gradient.ts';
import { solveNonnegative } from '../../../cpu/reference/nonnegative.ts';
import type { NormalEquations } from '../../../cpu/reference/normal-equations.ts';
import { RESIDUAL_LIMIT } from './limits.ts';
import { deviation, worse } from './numbers.ts';

/** Largest rank at which the twin runs: it takes f⁵ operations. Above, gradients alone are checked. */
const TWIN_RANKS = 64;

/**
 * Limit of the deviation from the float64 minimum, relative to the largest element. It is the condition
 * number of A times the largest gradient that counts as 0.
 */
const NONNEGATIVE_LIMIT = 2e-3;

/**
 * The two errors of x (with biases: [x, β]), each divided by its limit: the error of its gradients, and its
 * deviation from the float64 minimum. With biases, β follows from the factors by elimination, which needs a
 * positive definite A.
 */
export function minimumError(
  equations: NormalEquations,
  x: Float64Array,
  biases: boolean,
  {
    gradient = RESIDUAL_LIMIT,
    distance = NONNEGATIVE_LIMIT,
  }: { readonly gradient?: number; readonly distance?: number } = {},
): number {
  const { factors, biasOf } = biases ? leftOfBias(equations) : { factors: equations, biasOf: undefined };
  const found = x.subarray(0, factors.bias.length);
  const error = gradientError(factors, found) / gradient;
  if (found.length > TWIN_RANKS)
    return worse(error, biasOf ? Math.abs(biasOf(found) - x[found.length]) / distance : 0);
  const expected = solveNonnegative(factors);
  if (expected === undefined) return Infinity;
  const whole = biasOf ? [...expected, biasOf(expected)] : expected;
  return worse(error, deviation(x, whole) / distance);
}

/**
 * The largest component of the gradient along which the objective could still decrease within x >= 0,
 * relative to ‖b‖. Infinity if a feature of x is negative.
 */
export function gradientError({ matrix, bias }: NormalEquations, x: Float64Array): number {
  const product = multiply(matrix, x);
  const left = x.map((value, i) =>
    value < 0 ? Infinity : value > 0 ? Math.abs(product[i] - bias[i]) : Math.max(0, bias[i] - product[i]),
  );
  return Math.max(...left) / (Math.hypot(...bias) || 1);
}
