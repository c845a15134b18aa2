/** Twins of the implicit kernels of cpu/assembly in float64. */
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import type { NormalEquations, RatedColumns } from './normal-equations.ts';

/** weight ΘᵀΘ: rank x rank, row-major. */
export function gramMatrix(
  theta: ArrayLike<number>,
  stride: number,
  rank: number,
  rows: number,
  weight: number,
): Float64Array {
  const gram = new Float64Array(rank * rank);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < rank; i++)
      for (let j = 0; j < rank; j++)
        gram[i * rank + j] += weight * theta[row * stride + i] * theta[row * stride + j];
  }
  return gram;
}

/** The weight w and target t of a rating, which adds w θθᵀ to A and t θ to b. */
export function weightsOf(
  rating: number,
  { alpha, base }: ImplicitWeights,
): { readonly weight: number; readonly target: number } {
  return { weight: alpha * Math.abs(rating), target: rating > 0 ? base + alpha * rating : 0 };
}

/** A = G + Σ w θθᵀ + shift I and b = Σ t θ of one row, for its ratings' weights w and targets t. */
export function implicitEquations(
  gram: Float64Array,
  theta: ArrayLike<number>,
  stride: number,
  rank: number,
  row: RatedColumns,
  weights: ImplicitWeights,
  shift: number,
): NormalEquations {
  const matrix = Float64Array.from(gram);
  const bias = new Float64Array(rank);
  for (let k = 0; k < row.indices.length; k++) {
    const at = row.indices[k] * stride;
    const { weight, target } = weightsOf(row.values[k], weights);
    for (let i = 0; i < rank; i++) {
      bias[i] += target * theta[at + i];
      for (let j = 0; j < rank; j++) matrix[i * rank + j] += weight * theta[at + i] * theta[at + j];
    }
  }
  for (let i = 0; i < rank; i++) matrix[i * rank + i] += shift;
  return { matrix, bias };
}
