/**
 * The updates of sgd.ts with a learning rate for each row and column: AdaGrad as in libmf, with one sum G of
 * squared gradients for each row or column (Chin, Zhuang, Juan, Lin: A Learning-rate Schedule for Stochastic
 * Gradient Methods to Matrix Factorization, 2015):
 *
 *     g = e q - λ_p p;   p <- p + α / √(1 + G_p) g;   G_p <- G_p + ‖g‖² / f
 *
 *     sums      one float32 G for each row or column
 *     steps     6 vectors: mask of the first four elements of p and of q (0 for an element that stays 1),
 *               λ_p, λ_q, α, 1 / f
 */
import { VECTOR, WORD, indexAt, multiplyAdd, multiplySubtract, sumLanes } from '../simd';
import { dot } from '../vectors';

@inline
function step(
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

/**
 * Like stepRows of sgd.ts, with AdaGrad's sums of squared gradients, a float32 for each row and column:
 * `rowSums` starts with the first of the `rows` rows, `columnSums` with column 0.
 */
export function adaptRows(
  rowFactors: usize,
  columnFactors: usize,
  size: usize,
  rowSums: usize,
  columnSums: usize,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  steps: usize,
): void {
  let rating = 0;
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    offsets += WORD;
    const end = load<i32>(offsets) - origin;
    for (; rating < end; rating++) {
      const column = indexAt(indices, rating);
      step(
        rowFactors,
        columnFactors + column * size,
        size,
        load<f32>(values + ((<usize>rating) << 2)),
        rowSums,
        columnSums + (column << 2),
        steps,
      );
    }
    rowFactors += size;
    rowSums += WORD;
  }
}

/** Like stepRatings of sgd.ts, with the sums of squared gradients. */
export function adaptRatings(
  rowFactors: usize,
  columnFactors: usize,
  size: usize,
  rowSums: usize,
  columnSums: usize,
  rows: usize,
  columns: usize,
  values: usize,
  count: i32,
  steps: usize,
): void {
  for (let k = 0; k < count; k++) {
    const row = indexAt(rows, k);
    const column = indexAt(columns, k);
    step(
      rowFactors + row * size,
      columnFactors + column * size,
      size,
      load<f32>(values + ((<usize>k) << 2)),
      rowSums + (row << 2),
      columnSums + (column << 2),
      steps,
    );
  }
}
