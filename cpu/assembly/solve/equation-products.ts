/**
 * Products of a row's stored normal equations with a vector, for conjugate gradients in which several devices
 * exchange vectors. The equations are the lower triangle of A row by row, then b, n and, with a bias, s and t
 * (layout of operators/tasks/equation-tasks.ts).
 */
import { VECTOR, WORD, multiplyAdd, sumLanes } from '../simd';

/**
 * y += factor A p for the packed lower triangle of A. Each element below the diagonal is read once, and used
 * for its row and for its column.
 */
export function addTriangleProducts(triangle: usize, rank: i32, factor: f32, p: usize, y: usize): void {
  const features = <usize>rank;
  let row = triangle;
  for (let i: usize = 0; i < features; i++) {
    const own = factor * load<f32>(p + (i << 2));
    const scaled = f32x4.splat(own);
    let sums = f32x4.splat(0);
    let at: usize = 0;
    const end = i << 2;
    for (; at + VECTOR <= end; at += VECTOR) {
      const elements = v128.load(row + at);
      sums = multiplyAdd(elements, v128.load(p + at), sums);
      v128.store(y + at, multiplyAdd(scaled, elements, v128.load(y + at)));
    }
    let sum = sumLanes(sums);
    for (; at < end; at += WORD) {
      const element = load<f32>(row + at);
      sum += element * load<f32>(p + at);
      store<f32>(y + at, load<f32>(y + at) + own * element);
    }
    store<f32>(y + end, load<f32>(y + end) + factor * sum + own * load<f32>(row + end));
    row += end + WORD;
  }
}

/**
 * Adds one device's equations of a row to the row's gradients (fields: operators/tasks/vector-tasks.ts): its
 * b - A x to `gradients`; n (ratings), with biases t (their sum), and bᵀx to `scalars`; with biases s = Σ θ_v
 * to `sums`, which is 0 without biases.
 */
export function addEquationResidual(
  equations: usize,
  rank: i32,
  x: usize,
  gradients: usize,
  scalars: usize,
  sums: usize,
): void {
  const features = <usize>rank;
  addTriangleProducts(equations, rank, -1, x, gradients);
  const b = equations + ((features * (features + 1)) << 1);
  const n = b + (features << 2);
  let along: f32 = 0;
  for (let at: usize = 0; at < features << 2; at += WORD) {
    const value = load<f32>(b + at);
    store<f32>(gradients + at, load<f32>(gradients + at) + value);
    along += value * load<f32>(x + at);
    if (sums) store<f32>(sums + at, load<f32>(sums + at) + load<f32>(n + WORD + at));
  }
  store<f32>(scalars, load<f32>(scalars) + load<f32>(n));
  if (sums) store<f32>(scalars, load<f32>(scalars, 4) + load<f32>(n + WORD + (features << 2)), 4);
  store<f32>(scalars, load<f32>(scalars, 8) + along, 8);
}
