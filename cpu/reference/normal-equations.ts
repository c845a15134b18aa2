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
