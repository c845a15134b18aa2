/**
 * Measures the error of minima over x >= 0, which a kernel computed, by their gradients and against float64.
 */
import { leftOfBias } from '../../../cpu/reference/biased.ts';
import { multiply } from '../../../cpu/reference/conjugate-gradient.ts';
import { solveNonnegative } from '../../../cpu/reference/nonnegative.ts';
import type { NormalEquations } from '../../../cpu/reference/normal-equations.ts';
import { RESIDUAL_LIMIT } from './limits.ts';
import { deviation, worse } from './numbers.ts';

/**
 * Largest rank at which the minimum is also computed in float64, which takes f⁵ operations. Above it only
 * gradients are checked.
 */
const TWIN_RANKS = 64;

/**
 * Limit of the deviation from the float64 minimum, relative to its largest element: the condition number of A
 * times the largest gradient that is accepted as 0.
 */
const NONNEGATIVE_LIMIT = 2e-3;

/**
 * The larger of two errors of x (with biases: [x, β]), each divided by its limit: the error of its gradients,
 * and its deviation from the float64 minimum. With biases, β must follow from the factors by elimination, for
 * which A must be positive definite.
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
 * The largest component of the gradient A x - b in whose direction the objective could still decrease within
 * x >= 0, relative to ‖b‖. Infinity if an element of x is negative.
 */
export function gradientError({ matrix, bias }: NormalEquations, x: Float64Array): number {
  const product = multiply(matrix, x);
  const left = x.map((value, i) =>
    value < 0 ? Infinity : value > 0 ? Math.abs(product[i] - bias[i]) : Math.max(0, bias[i] - product[i]),
  );
  return Math.max(...left) / (Math.hypot(...bias) || 1);
}
