/**
 * Float64 versions of cpu/assembly/errors.ts. Matrices are row-major, with `stride` elements
 * in each row.
 */

export function predictPair(
  x: ArrayLike<number>,
  row: number,
  theta: ArrayLike<number>,
  column: number,
  stride: number,
): number {
  let sum = 0;
  for (let k = 0; k < stride; k++) sum += x[row * stride + k] * theta[column * stride + k];
  return sum;
}

export interface Block {
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/** Σ e² and Σ |e| over the ratings of the rows [from, to). */
export function errors(
  x: ArrayLike<number>,
  theta: ArrayLike<number>,
  stride: number,
  block: Block,
  from: number,
  to: number,
) {
  let [squared, absolute, count] = [0, 0, 0];
  for (let row = from; row < to; row++) {
    for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
      const error = block.values[k] - predictPair(x, row, theta, block.indices[k], stride);
      squared += error * error;
      absolute += Math.abs(error);
      count++;
    }
  }
  return { squared, absolute, count };
}

/**
 * Sums over the rows in [from, to) that have ratings: Σ n_u β_u², Σ β_u² and Σ T_u β_u, where T_u is the
 * row's entry in `totals`.
 */
export function biasSums(
  bias: ArrayLike<number>,
  totals: ArrayLike<number>,
  offsets: Int32Array,
  from: number,
  to: number,
) {
  let [biasSum, biasPlain, biasAlong] = [0, 0, 0];
  for (let row = from; row < to; row++) {
    const n = offsets[row + 1] - offsets[row];
    if (n === 0) continue;
    biasSum += n * bias[row] ** 2;
    biasPlain += bias[row] ** 2;
    biasAlong += totals[row] * bias[row];
  }
  return { biasSum, biasPlain, biasAlong };
}

/** Two sums over the rows in [from, to) that have ratings: Σ n_u^ν ‖x_u‖² and Σ ‖x_u‖². `exponent`: ν. */
export function weightedNorm(
  x: ArrayLike<number>,
  stride: number,
  offsets: Int32Array,
  from: number,
  to: number,
  exponent = 1,
) {
  let [sum, plain] = [0, 0];
  for (let row = from; row < to; row++) {
    const n = offsets[row + 1] - offsets[row];
    const weight = n === 0 ? 0 : n ** exponent;
    for (let k = 0; k < stride; k++) {
      const square = x[row * stride + k] ** 2;
      sum += weight * square;
      if (n > 0) plain += square;
    }
  }
  return { sum, plain };
}
