/** Predicts single ratings: values[k] = x_uᵀ θ_v for u = rows[k] and v = columns[k]. */
import { WORD, indexAt } from './simd';
import { dot } from './vectors';

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
