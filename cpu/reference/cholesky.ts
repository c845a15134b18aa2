/** Twin of cpu/assembly/solve/cholesky.ts in float64. */

/**
 * Returns U of A = UᵀU (rank x rank, row-major, 0 below the diagonal), or undefined if a pivot is not
 * positive.
 */
export function factor(matrix: Float64Array, rank: number): Float64Array | undefined {
  const upper = new Float64Array(rank * rank);
  for (let i = 0; i < rank; i++) {
    for (let j = i; j < rank; j++) {
      let sum = matrix[i * rank + j];
      for (let k = 0; k < i; k++) sum -= upper[k * rank + i] * upper[k * rank + j];
      if (i === j && !(sum > 0)) return undefined;
      upper[i * rank + j] = i === j ? Math.sqrt(sum) : sum / upper[i * rank + i];
    }
  }
  return upper;
}

/** x of A x = b; undefined when A is not positive definite. */
export function solveCholesky(matrix: Float64Array, bias: Float64Array): Float64Array | undefined {
  const rank = bias.length;
  const upper = factor(matrix, rank);
  if (upper === undefined) return undefined;
  const x = Float64Array.from(bias);
  for (let i = 0; i < rank; i++) {
    for (let k = 0; k < i; k++) x[i] -= upper[k * rank + i] * x[k];
    x[i] /= upper[i * rank + i];
  }
  for (let i = rank - 1; i >= 0; i--) {
    for (let k = i + 1; k < rank; k++) x[i] -= upper[i * rank + k] * x[k];
    x[i] /= upper[i * rank + i];
  }
  return x;
}
