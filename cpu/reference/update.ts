import { biasedEquations, biasedGradients, shifted } from './biased.ts';
import { solveCholesky } from './cholesky.ts';
import { conjugateGradient } from './conjugate-gradient.ts';
import { normalEquations, type RatedColumns } from './normal-equations.ts';

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
