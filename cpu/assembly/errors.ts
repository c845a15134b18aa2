/**
 * Errors over ratings, summed in float64 in row order: each rating's error is a float32 r_uv - x_uᵀθ_v.
 */
import { VECTOR, WORD, indexAt, multiplyAdd, sumLanesOfFour } from './simd';
import { dot } from './vectors';

/**
 * Adds Σ e² and Σ |e| over the ratings of `rows` rows to the two float64 at `sums`. `offsets`, `indices` and
 * `values` are as in updateRows.
 */
export function addErrors(
  rowFactors: usize,
  columnFactors: usize,
  size: usize,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  sums: usize,
): void {
  let squared = load<f64>(sums);
  let absolute = load<f64>(sums, 8);
  let rating = 0;
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    offsets += WORD;
    const end = load<i32>(offsets) - origin;
    for (; rating + 4 <= end; rating += 4) {
      const errors = f32x4.sub(
        v128.load(values + ((<usize>rating) << 2)),
        dotFour(rowFactors, columnFactors, size, indices, rating),
      );
      const error0 = <f64>f32x4.extract_lane(errors, 0);
      const error1 = <f64>f32x4.extract_lane(errors, 1);
      const error2 = <f64>f32x4.extract_lane(errors, 2);
      const error3 = <f64>f32x4.extract_lane(errors, 3);
      squared += error0 * error0 + error1 * error1 + (error2 * error2 + error3 * error3);
      absolute += abs(error0) + abs(error1) + (abs(error2) + abs(error3));
    }
    for (; rating < end; rating++) {
      const column = columnFactors + indexAt(indices, rating) * size;
      const error = <f64>(load<f32>(values + ((<usize>rating) << 2)) - dot(rowFactors, column, size));
      squared += error * error;
      absolute += abs(error);
    }
    rowFactors += size;
  }
  store<f64>(sums, squared);
  store<f64>(sums, absolute, 8);
}

/** Products xᵀθ of four consecutive ratings. */
@inline
function dotFour(x: usize, theta: usize, size: usize, indices: usize, first: i32): v128 {
  let at0 = theta + indexAt(indices, first) * size;
  let at1 = theta + indexAt(indices, first + 1) * size;
  let at2 = theta + indexAt(indices, first + 2) * size;
  let at3 = theta + indexAt(indices, first + 3) * size;
  let sum0 = f32x4.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  // Counts down, because the end address of the last matrix may be 4 GiB, which overflows to 0.
  for (let left = size; left > 0; left -= 2 * VECTOR) {
    const low = v128.load(x);
    const high = v128.load(x, 16);
    sum0 = multiplyAdd(v128.load(at0), low, sum0);
    sum1 = multiplyAdd(v128.load(at1), low, sum1);
    sum2 = multiplyAdd(v128.load(at2), low, sum2);
    sum3 = multiplyAdd(v128.load(at3), low, sum3);
    sum0 = multiplyAdd(v128.load(at0, 16), high, sum0);
    sum1 = multiplyAdd(v128.load(at1, 16), high, sum1);
    sum2 = multiplyAdd(v128.load(at2, 16), high, sum2);
    sum3 = multiplyAdd(v128.load(at3, 16), high, sum3);
    x += 2 * VECTOR;
    at0 += 2 * VECTOR;
    at1 += 2 * VECTOR;
    at2 += 2 * VECTOR;
    at3 += 2 * VECTOR;
  }
  return sumLanesOfFour(sum0, sum1, sum2, sum3);
}

/**
 * Adds two sums over rows to the two float64 at `sums`: Σ w_u ‖x_u‖², and Σ ‖x_u‖² over the rows with w_u >
 * 0. `weights`: the w_u, Float64[rows]. `priors`: rows that are subtracted from the x_u, or 0.
 */
export function addWeightedNorms(
  factors: usize,
  priors: usize,
  size: usize,
  weights: usize,
  rows: i32,
  sums: usize,
): void {
  let weighted = load<f64>(sums);
  let plain = load<f64>(sums, 8);
  for (let row = 0; row < rows; row++) {
    const weight = load<f64>(weights + ((<usize>row) << 3));
    let norm: f64 = 0;
    for (let j: usize = 0; j < size; j += 2 * WORD) {
      let even = <f64>load<f32>(factors + j);
      let odd = <f64>load<f32>(factors + j, 4);
      if (priors) {
        even -= <f64>load<f32>(priors + j);
        odd -= <f64>load<f32>(priors + j, 4);
      }
      norm += even * even + odd * odd;
    }
    weighted += weight * norm;
    if (weight > 0) plain += norm;
    factors += size;
    if (priors) priors += size;
  }
  store<f64>(sums, weighted);
  store<f64>(sums, plain, 8);
}

/**
 * Adds Σ w (p - s)² + base p (1 - 2 s) over the ratings of `rows` rows to the float64 at `sum`. s = x_uᵀθ_v,
 * and p = 1 if the target is above 0. Offsets and indices as in updateRows; `targets` and `weights` as
 * written by weighRatings.
 */
export function addImplicitErrors(
  rowFactors: usize,
  columnFactors: usize,
  size: usize,
  offsets: usize,
  indices: usize,
  targets: usize,
  weights: usize,
  base: f64,
  rows: i32,
  sum: usize,
): void {
  let total = load<f64>(sum);
  let rating = 0;
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    offsets += WORD;
    const end = load<i32>(offsets) - origin;
    for (; rating < end; rating++) {
      const at = (<usize>rating) << 2;
      const s = <f64>dot(rowFactors, columnFactors + indexAt(indices, rating) * size, size);
      const preferred: f64 = load<f32>(targets + at) > 0 ? 1 : 0;
      const error = preferred - s;
      total += <f64>load<f32>(weights + at) * error * error + base * preferred * (1 - 2 * s);
    }
    rowFactors += size;
  }
  store<f64>(sum, total);
}

/** Predicts single ratings: values[k] = x_uᵀ θ_v for u = rows[k] and v = columns[k]. */

/** `rows`, `columns`: Uint32[count]; `values`: Float32[count]. */
export function predictPairs(
  rowFactors: usize,
  columnFactors: usize,
  size: usize,
  rows: usize,
  columns: usize,
  count: i32,
  values: usize,
): void {
  for (let k = 0; k < count; k++) {
    const x = rowFactors + indexAt(rows, k) * size;
    const theta = columnFactors + indexAt(columns, k) * size;
    store<f32>(values + <usize>k * WORD, dot(x, theta, size));
  }
}
