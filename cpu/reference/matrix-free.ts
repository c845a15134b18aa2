/**
 * Float64 version of rows that are solved without forming A (cpu/assembly/solve/passes.ts, gpu/vectors/). A
 * is given by its products with vectors, which take time in proportion to the rank, not to its square.
 */
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import { weightsOf, type RatedColumns } from './normal-equations.ts';
import { dot, gradientSteps } from './solvers.ts';

/** Rows of θ, row-major with `stride` >= rank elements a row. */
export interface Theta {
  readonly theta: ArrayLike<number>;
  readonly stride: number;
  readonly rank: number;
}

export interface FreeEquations {
  times(x: Float64Array): Float64Array;
  readonly bias: Float64Array;
}

/** Σ f(v, θ_vᵀ x) θ_v over a row's ratings. */
function overRatings(
  { theta, stride, rank }: Theta,
  { indices }: RatedColumns,
  x: Float64Array,
  factorOf: (k: number, product: number) => number,
): Float64Array {
  const sum = new Float64Array(rank);
  for (let k = 0; k < indices.length; k++) {
    const at = indices[k] * stride;
    let product = 0;
    for (let i = 0; i < rank; i++) product += theta[at + i] * x[i];
    const factor = factorOf(k, product);
    for (let i = 0; i < rank; i++) sum[i] += factor * theta[at + i];
  }
  return sum;
}

/** A = Σ θ_v θ_vᵀ + shift I and b = Σ r_v θ_v of explicit ratings. */
export function explicitProducts(theta: Theta, row: RatedColumns, shift: number): FreeEquations {
  const zero = new Float64Array(theta.rank);
  return {
    times: (x) => overRatings(theta, row, x, (_, product) => product).map((value, i) => value + shift * x[i]),
    bias: overRatings(theta, row, zero, (k) => row.values[k]),
  };
}

/** A = G + Σ w_v θ_v θ_vᵀ + shift I and b = Σ t_v θ_v of implicit data; `gram` multiplies by G. */
export function implicitProducts(
  theta: Theta,
  row: RatedColumns,
  weights: ImplicitWeights,
  shift: number,
  gram: (x: Float64Array) => Float64Array,
): FreeEquations {
  const of = Array.from(row.values, (rating) => weightsOf(rating, weights));
  const zero = new Float64Array(theta.rank);
  return {
    times(x) {
      const whole = gram(x);
      return overRatings(theta, row, x, (k, product) => of[k].weight * product).map(
        (value, i) => value + whole[i] + shift * x[i],
      );
    },
    bias: overRatings(theta, row, zero, (k) => of[k].target),
  };
}

/** Multiplies by the Gram matrix weight ΘᵀΘ of `rows` rows. */
export function gramTimes(theta: Theta, rows: number, weight: number): (x: Float64Array) => Float64Array {
  const every = { indices: Array.from({ length: rows }, (_, row) => row), values: [] };
  return (x) => overRatings(theta, every, x, (_, product) => weight * product);
}

/** x after `steps` steps from `start`. */
export function freeGradients(
  { times, bias }: FreeEquations,
  start: Float64Array,
  steps: number,
): Float64Array {
  return gradientSteps(times, bias, start, steps);
}

/**
 * [x, β] of a row with a bias β, as biasedGradients. `equations` are of x without a bias, and `weight`
 * is the bias's own element of the matrix, n + its shift.
 */
export function freeBiasedGradients(
  theta: Theta,
  row: RatedColumns,
  shift: number,
  weight: number,
  start: Float64Array,
  steps: number,
): Float64Array {
  const { times, bias } = explicitProducts(theta, row, shift);
  const sums = overRatings(theta, row, new Float64Array(theta.rank), () => 1);
  const total = Array.from(row.values).reduce((sum, value) => sum + value, 0);
  const x = gradientSteps(
    (p) => {
      const along = dot(sums, p) / weight;
      return times(p).map((value, i) => value - along * sums[i]);
    },
    bias.map((value, i) => value - (total / weight) * sums[i]),
    start,
    steps,
  );
  return Float64Array.from([...x, (total - dot(sums, x)) / weight]);
}
