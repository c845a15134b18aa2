import { normalEquations, type RatedColumns, type NormalEquations } from './normal-equations.ts';
import { solveCholesky, conjugateGradient } from './solvers.ts';

/**
 * Float64 versions, for tests, of cpu/assembly/solve/steps.ts: rows with a bias β. The bias is
 * treated as the factor of one more feature, which is 1 in every row of θ.
 */

/** A and b without any shift. The feature that is 1 is the last. */
export function biasedEquations(
  theta: ArrayLike<number>,
  stride: number,
  rank: number,
  row: RatedColumns,
): NormalEquations {
  const features = rank + 1;
  const gathered = new Float64Array(row.indices.length * features).fill(1);
  for (let k = 0; k < row.indices.length; k++)
    for (let i = 0; i < rank; i++) gathered[k * features + i] = theta[row.indices[k] * stride + i];
  return normalEquations(
    gathered,
    features,
    features,
    { indices: Array.from(row.indices, (_, k) => k), values: row.values },
    0,
  );
}

/** Copies equations, with `shift` added to the factors' diagonal elements, and `ownShift` to the bias's. */
export function shifted({ matrix, bias }: NormalEquations, shift: number, ownShift: number): NormalEquations {
  const features = bias.length;
  return {
    matrix: matrix.map((value, at) =>
      at % (features + 1) === 0 ? value + (at === features * features - 1 ? ownShift : shift) : value,
    ),
    bias,
  };
}

/**
 * Eliminates β: returns the equations for x, (A - s sᵀ / c) x = b - (t / c) s, and the function from x to β.
 */
export function leftOfBias({ matrix, bias }: NormalEquations): {
  readonly factors: NormalEquations;
  biasOf(x: Float64Array): number;
} {
  const features = bias.length;
  const rank = features - 1;
  const [sums, weight, total] = [
    matrix.subarray(rank * features, rank * features + rank),
    matrix[features * features - 1],
    bias[rank],
  ];
  const left = Float64Array.from({ length: rank * rank }, (_, at) => {
    const [i, j] = [Math.floor(at / rank), at % rank];
    return matrix[i * features + j] - (sums[i] * sums[j]) / weight;
  });
  return {
    factors: {
      matrix: left,
      bias: bias.subarray(0, rank).map((value, i) => value - (total / weight) * sums[i]),
    },
    biasOf: (x) => (total - x.reduce((sum, value, i) => sum + value * sums[i], 0)) / weight,
  };
}

/** Returns [x, β]: x after `steps` CG steps from `start` on the equations without β, and the β of this x. */
export function biasedGradients(
  equations: NormalEquations,
  start: Float64Array,
  steps: number,
): Float64Array {
  const { factors, biasOf } = leftOfBias(equations);
  const x = conjugateGradient(factors.matrix, factors.bias, start, steps);
  return Float64Array.from([...x, biasOf(x)]);
}

/**
 * Float64 version of cpu/assembly/update.ts for one row: solves x from its ratings exactly, or if `exact` is
 * false, by `steps` CG steps from `previous`. Returns undefined if A is not positive definite.
 */
export function updateRow(
  theta: ArrayLike<number>,
  stride: number,
  rank: number,
  row: RatedColumns,
  lambda: number,
  exact: boolean,
  previous: Float64Array,
  steps: number,
): Float64Array | undefined {
  if (row.indices.length === 0) return new Float64Array(rank);
  const { matrix, bias } = normalEquations(theta, stride, rank, row, lambda);
  return exact ? solveCholesky(matrix, bias) : conjugateGradient(matrix, bias, previous, steps);
}

/**
 * Like updateRow for a row with a bias β: returns [x, β]. μ and the fixed side's biases must already be
 * subtracted from the ratings. `shift` is added to the diagonal of A, `ownShift` to β's element. Returns
 * undefined if the equations are not positive definite.
 */
export function updateBiasedRow(
  theta: ArrayLike<number>,
  stride: number,
  rank: number,
  row: RatedColumns,
  { shift, ownShift }: { readonly shift: number; readonly ownShift: number },
  exact: boolean,
  previous: Float64Array,
  steps: number,
): Float64Array | undefined {
  if (row.indices.length === 0) return new Float64Array(rank + 1);
  const equations = shifted(biasedEquations(theta, stride, rank, row), shift, ownShift);
  return exact
    ? solveCholesky(equations.matrix, equations.bias)
    : biasedGradients(equations, previous, steps);
}
