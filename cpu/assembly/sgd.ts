/**
 * Stochastic gradient descent over ratings in compressed rows, one rating after the other (cuMF_SGD, section
 * 2.2). With the learning rate γ:
 *
 *     e = r - pᵀq;   p <- p + γ (e q - λ_p p);   q <- q + γ (e p - λ_q q)    with the old p in the last
 *
 * p is the row's vector, which stays in the first-level cache during the row; q is the column's. As one
 * formula with decay = 1 - γλ and gain = γ, element by element:
 *
 *     p' = decay_p ⊙ p + e (gain_p ⊙ q)
 *
 * With biases p = [row bias, 1, x..] and q = [1, column bias, θ..], and the elements that must stay 1 have
 * decay 1 and gain 0. Only the first four elements need their own decay and gain, so biases cost no time.
 * `steps` has these 8 vectors of four numbers: decay and gain of the first four elements of p, decay and gain
 * of its others, and the same for q.
 *
 * Threads may run this on rows and columns that other threads write (Hogwild!): loads and stores are plain.
 *
 * With AdaGrad each row and column has its own learning rate, as in libmf, from one sum G of squared gradients
 * for each row or column (Chin, Zhuang, Juan, Lin: A Learning-rate Schedule for Stochastic Gradient Methods to
 * Matrix Factorization, 2015):
 *
 *     g = e q - λ_p p;   p <- p + α / √(1 + G_p) g;   G_p <- G_p + ‖g‖² / f
 *
 *     sums      one float32 G for each row or column
 *     steps     6 vectors: mask of the first four elements of p and of q (0 for an element that stays 1),
 *               λ_p, λ_q, α, 1 / f
 */
import { VECTOR, WORD, indexAt, multiplyAdd, multiplySubtract, sumLanes } from './simd';
import { dot } from './vectors';

/** Updates p and q for one rating. */
@inline
function step(p: usize, q: usize, size: usize, rating: f32, steps: usize): void {
  let even = f32x4.mul(v128.load(p), v128.load(q));
  let odd = f32x4.mul(v128.load(p, 16), v128.load(q, 16));
  for (let j: usize = 2 * VECTOR; j < size; j += 2 * VECTOR) {
    even = multiplyAdd(v128.load(p + j), v128.load(q + j), even);
    odd = multiplyAdd(v128.load(p + j, 16), v128.load(q + j, 16), odd);
  }
  const error = f32x4.splat(rating - sumLanes(f32x4.add(even, odd)));
  let rowFactor = v128.load(p);
  let columnFactor = v128.load(q);
  v128.store(
    p,
    multiplyAdd(error, f32x4.mul(v128.load(steps, 16), columnFactor), f32x4.mul(v128.load(steps), rowFactor)),
  );
  v128.store(
    q,
    multiplyAdd(
      error,
      f32x4.mul(v128.load(steps, 80), rowFactor),
      f32x4.mul(v128.load(steps, 64), columnFactor),
    ),
  );
  const rowDecay = v128.load(steps, 32);
  const columnDecay = v128.load(steps, 96);
  const rowGain = f32x4.mul(error, v128.load(steps, 48));
  const columnGain = f32x4.mul(error, v128.load(steps, 112));
  rowFactor = v128.load(p, 16);
  columnFactor = v128.load(q, 16);
  v128.store(p, multiplyAdd(rowGain, columnFactor, f32x4.mul(rowDecay, rowFactor)), 16);
  v128.store(q, multiplyAdd(columnGain, rowFactor, f32x4.mul(columnDecay, columnFactor)), 16);
  for (let j: usize = 2 * VECTOR; j < size; j += 2 * VECTOR) {
    rowFactor = v128.load(p + j);
    columnFactor = v128.load(q + j);
    v128.store(p + j, multiplyAdd(rowGain, columnFactor, f32x4.mul(rowDecay, rowFactor)));
    v128.store(q + j, multiplyAdd(columnGain, rowFactor, f32x4.mul(columnDecay, columnFactor)));
    rowFactor = v128.load(p + j, 16);
    columnFactor = v128.load(q + j, 16);
    v128.store(p + j, multiplyAdd(rowGain, columnFactor, f32x4.mul(rowDecay, rowFactor)), 16);
    v128.store(q + j, multiplyAdd(columnGain, rowFactor, f32x4.mul(columnDecay, columnFactor)), 16);
  }
}

/** Like step, with AdaGrad's sums of squared gradients of the row and the column. */
@inline
function adapt(
  p: usize,
  q: usize,
  size: usize,
  rating: f32,
  rowSum: usize,
  columnSum: usize,
  steps: usize,
): void {
  const error = f32x4.splat(rating - dot(p, q, size));
  const rowLambda = v128.load(steps, 32);
  const columnLambda = v128.load(steps, 48);
  const alpha = v128.load(steps, 64);
  const one = f32x4.splat(1);
  const rowRate = f32x4.div(alpha, f32x4.sqrt(f32x4.add(one, v128.load32_splat(rowSum))));
  const columnRate = f32x4.div(alpha, f32x4.sqrt(f32x4.add(one, v128.load32_splat(columnSum))));
  let rowFactor = v128.load(p);
  let columnFactor = v128.load(q);
  let rowGradient = f32x4.mul(
    v128.load(steps),
    multiplySubtract(rowLambda, rowFactor, f32x4.mul(error, columnFactor)),
  );
  let columnGradient = f32x4.mul(
    v128.load(steps, 16),
    multiplySubtract(columnLambda, columnFactor, f32x4.mul(error, rowFactor)),
  );
  v128.store(p, multiplyAdd(rowRate, rowGradient, rowFactor));
  v128.store(q, multiplyAdd(columnRate, columnGradient, columnFactor));
  let rowSquares = f32x4.mul(rowGradient, rowGradient);
  let columnSquares = f32x4.mul(columnGradient, columnGradient);
  for (let j = VECTOR; j < size; j += VECTOR) {
    rowFactor = v128.load(p + j);
    columnFactor = v128.load(q + j);
    rowGradient = multiplySubtract(rowLambda, rowFactor, f32x4.mul(error, columnFactor));
    columnGradient = multiplySubtract(columnLambda, columnFactor, f32x4.mul(error, rowFactor));
    v128.store(p + j, multiplyAdd(rowRate, rowGradient, rowFactor));
    v128.store(q + j, multiplyAdd(columnRate, columnGradient, columnFactor));
    rowSquares = multiplyAdd(rowGradient, rowGradient, rowSquares);
    columnSquares = multiplyAdd(columnGradient, columnGradient, columnSquares);
  }
  const perFeature = load<f32>(steps, 80);
  store<f32>(rowSum, load<f32>(rowSum) + perFeature * sumLanes(rowSquares));
  store<f32>(columnSum, load<f32>(columnSum) + perFeature * sumLanes(columnSquares));
}

/** The factors that ratings update. */
@unmanaged
export class SgdSides {
  rowFactors: usize;
  columnFactors: usize;
  size: usize;
  /** The sums of AdaGrad; 0 without AdaGrad. */
  rowSums: usize;
  columnSums: usize;
  steps: usize;
}

/** The common code of stepRows, with `adaptive` as a compile-time constant. */
@inline
function walkRows(
  sides: SgdSides,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  adaptive: bool,
): void {
  const columnFactors = sides.columnFactors;
  const size = sides.size;
  const columnSums = sides.columnSums;
  const steps = sides.steps;
  let rowFactors = sides.rowFactors;
  let rowSums = sides.rowSums;
  let rating = 0;
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    offsets += WORD;
    const end = load<i32>(offsets) - origin;
    for (; rating < end; rating++) {
      const column = indexAt(indices, rating);
      const q = columnFactors + column * size;
      const value = load<f32>(values + ((<usize>rating) << 2));
      if (adaptive) adapt(rowFactors, q, size, value, rowSums, columnSums + (column << 2), steps);
      else step(rowFactors, q, size, value, steps);
    }
    rowFactors += size;
    rowSums += WORD;
  }
}

/**
 * Updates the factors for all ratings of `rows` rows, in order. `offsets`, `indices` and `values` are as in
 * updateRows. The factors and sums of rows start at the first of the rows.
 */
export function stepRows(address: usize, offsets: usize, indices: usize, values: usize, rows: i32): void {
  const sides = changetype<SgdSides>(address);
  if (sides.rowSums) walkRows(sides, offsets, indices, values, rows, true);
  else walkRows(sides, offsets, indices, values, rows, false);
}

/** Updates the factors for `count` ratings, in their order. */
export function stepRatings(address: usize, rows: usize, columns: usize, values: usize, count: i32): void {
  const sides = changetype<SgdSides>(address);
  const rowFactors = sides.rowFactors;
  const columnFactors = sides.columnFactors;
  const size = sides.size;
  const rowSums = sides.rowSums;
  const columnSums = sides.columnSums;
  const steps = sides.steps;
  for (let k = 0; k < count; k++) {
    const row = indexAt(rows, k);
    const column = indexAt(columns, k);
    const p = rowFactors + row * size;
    const q = columnFactors + column * size;
    const value = load<f32>(values + ((<usize>k) << 2));
    if (rowSums) adapt(p, q, size, value, rowSums + (row << 2), columnSums + (column << 2), steps);
    else step(p, q, size, value, steps);
  }
}
