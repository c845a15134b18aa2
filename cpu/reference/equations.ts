/**
 * Float64 version of the task normal-equations: the equations of one row, in the layout of
 * operators/tasks/equation-tasks.ts.
 */
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import { implicitEquations } from './implicit.ts';
import { normalEquations, type RatedColumns } from './normal-equations.ts';

export interface EquationKind {
  /**
   * Appends the sums s = Σ θ_v and t = Σ r_v over the row's ratings. The row's values r_v are given without
   * the mean μ and the column biases γ_v.
   */
  readonly biases?: boolean;
  readonly implicit?: ImplicitWeights;
}

/**
 * The equations A x = b of one row as a list: the lower triangle of A, b, the number of ratings n and, with
 * biases, s and t.
 */
export function equationsOfRow(
  theta: ArrayLike<number>,
  stride: number,
  rank: number,
  row: RatedColumns,
  { biases = false, implicit }: EquationKind = {},
): Float64Array {
  const { matrix, bias } = implicit
    ? implicitEquations(new Float64Array(rank * rank), theta, stride, rank, row, implicit, 0)
    : normalEquations(theta, stride, rank, row, 0);
  const triangle: number[] = [];
  for (let i = 0; i < rank; i++) for (let j = 0; j <= i; j++) triangle.push(matrix[i * rank + j]);
  const sums = new Float64Array(rank + 1);
  for (let k = 0; k < row.indices.length; k++) {
    for (let i = 0; i < rank; i++) sums[i] += theta[row.indices[k] * stride + i];
    sums[rank] += row.values[k];
  }
  return Float64Array.from([...triangle, ...bias, row.indices.length, ...(biases ? sums : [])]);
}
