/**
 * Stochastic gradient descent over ratings in compressed rows, one rating after the other (cuMF_SGD, section
 * 2.2):
 *
 *     e = r - pᵀq;   p <- p + γ (e q - λ_p p);   q <- q + γ (e p - λ_q q)    with the old p in the last
 *
 * p is the row's vector, which stays in the L1 cache during the row; q is the column's. The first four
 * features are multiplied by separate vectors, so that biases cost nothing: with p = [β, 1, x..] and q = [1,
 * γ, θ..] the features that are 1 have decay 1 and gain 0.
 *
 *     steps     8 vectors: decay and gain of p's first four features, of its others; the same of q
 *     p' = decay_p ⊙ p + e (gain_p ⊙ q),   decay = 1 - γλ, gain = γ
 *
 * Threads may run it on rows and columns that others write (Hogwild!): loads and stores are plain.
 */
import { VECTOR, WORD, indexAt, multiplyAdd, sumLanes } from '../simd';

/** One step on (p, q). */
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

/** Steps over `rows` rows in order. Offsets, indices and values as in updateRows. */
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

/** Steps over `count` ratings in their order. */
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
