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
 */
import { VECTOR, WORD, indexAt, multiplyAdd, sumLanes } from '../simd';

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

/**
 * Updates the factors for all ratings of `rows` rows, in order. `offsets`, `indices` and `values` are as in
 * updateRows.
 */
export function stepRows(
  rowFactors: usize,
  columnFactors: usize,
  size: usize,
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
      step(
        rowFactors,
        columnFactors + indexAt(indices, rating) * size,
        size,
        load<f32>(values + ((<usize>rating) << 2)),
        steps,
      );
    }
    rowFactors += size;
  }
}

/** Updates the factors for `count` ratings, in their order. */
export function stepRatings(
  rowFactors: usize,
  columnFactors: usize,
  size: usize,
  rows: usize,
  columns: usize,
  values: usize,
  count: i32,
  steps: usize,
): void {
  for (let k = 0; k < count; k++) {
    step(
      rowFactors + indexAt(rows, k) * size,
      columnFactors + indexAt(columns, k) * size,
      size,
      load<f32>(values + ((<usize>k) << 2)),
      steps,
    );
  }
}
