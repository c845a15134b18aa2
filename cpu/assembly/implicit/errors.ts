/** The terms of the implicit loss for which the ratings must be read, in float64. */
import { WORD, indexAt } from '../simd';
import { dot } from '../vectors';

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
