import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
/** Twin of cpu/assembly/normal-equations.ts in float64. */

export interface NormalEquations {
  /** A: rank x rank, row-major, both triangles. */
  readonly matrix: Float64Array;
  /** b: rank elements. */
  readonly bias: Float64Array;
}

/** The ratings of one row: positions in θ, and values. */
export interface RatedColumns {
  readonly indices: ArrayLike<number>;
  readonly values: ArrayLike<number>;
}

/** A = Σ θ_v θ_vᵀ + λ n I and b = Σ r_uv θ_v; `theta` is row-major with `stride` >= rank elements a row. */
export function normalEquations(
  theta: ArrayLike<number>,
  stride: number,
  rank: number,
  row: RatedColumns,
  lambda: number,
): NormalEquations {
  const count = row.indices.length;
  const matrix = new Float64Array(rank * rank);
  const bias = new Float64Array(rank);
  for (let k = 0; k < count; k++) {
    const at = row.indices[k] * stride;
    for (let i = 0; i < rank; i++) {
      const element = theta[at + i];
      bias[i] += row.values[k] * element;
      for (let j = i; j < rank; j++) matrix[i * rank + j] += element * theta[at + j];
    }
  }
  for (let i = 0; i < rank; i++) {
    matrix[i * rank + i] += lambda * count;
    for (let j = 0; j < i; j++) matrix[i * rank + j] = matrix[j * rank + i];
  }
  return { matrix, bias };
}

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

/**
 * Float64 version of the task normal-equations: the equations of one row, in the layout of
 * operators/tasks/equation-tasks.ts.
 */

interface EquationKind {
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
