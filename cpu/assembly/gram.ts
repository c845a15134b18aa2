/**
 * Computes rows [from, to) of G = weight ΘᵀΘ, and by symmetry the same columns. `from` and `to` are multiples
 * of eight (`to` may also be the end). Tasks for different rows of G write different elements, so nothing has
 * to be added up over tasks.
 *
 * Rows of θ are adjacent in memory, so they are used as tiles of normal-equations.ts without a copy. Each
 * 1,024 rows are summed in float32, and these sums are added in float64.
 */
import { PART_RATINGS, TILE_ROWS, multiplyBlock } from './normal-equations';
import { VECTOR, WORD } from './simd';

/** Rows of G of one pass over Θ. */
const BAND: i32 = 16;

/** `matrix`: stride x stride. `work`: 12 * BAND * size bytes. */
export function gramRows(
  theta: usize,
  size: usize,
  rows: i32,
  from: i32,
  to: i32,
  weight: f64,
  matrix: usize,
  work: usize,
): void {
  for (let first = from; first < to; first += BAND)
    gramBand(theta, size, rows, first, min(BAND, to - first), weight, matrix, work);
}

function gramBand(
  theta: usize,
  size: usize,
  rows: i32,
  from: i32,
  count: i32,
  weight: f64,
  matrix: usize,
  work: usize,
): void {
  const part = work;
  const total = part + <usize>BAND * size;
  const begin = <usize>from * WORD;
  memory.fill(total, 0, 2 * <usize>BAND * size);
  for (let start = 0; start < rows; start += PART_RATINGS) {
    const end = min(start + PART_RATINGS, rows);
    for (let first = start; first < end; first += TILE_ROWS) {
      const tile = theta + <usize>first * size;
      const held = min(end - first, TILE_ROWS);
      for (let i: usize = 0; i < <usize>count * WORD; i += VECTOR) {
        const target = part + (i >> 2) * size;
        for (let j = (begin + i) & ~(<usize>31); j < size; j += 2 * VECTOR)
          multiplyBlock(tile + begin + i, tile + j, size, held, target + j, first > start);
      }
    }
    for (let i = 0; i < count; i++) {
      const row = <usize>i * size;
      for (let j = (begin + <usize>i * WORD) & ~(<usize>31); j < size; j += WORD) {
        const sum = total + 2 * (row + j);
        store<f64>(sum, load<f64>(sum) + <f64>load<f32>(part + row + j));
      }
    }
  }
  for (let i = 0; i < count; i++) {
    const own = begin + <usize>i * WORD;
    const row = <usize>(from + i) * size;
    for (let j = own; j < size; j += WORD) {
      const element = <f32>(weight * load<f64>(total + 2 * (<usize>i * size + j)));
      store<f32>(matrix + row + j, element);
      store<f32>(matrix + (j >> 2) * size + own, element);
    }
  }
}

/**
 * The weights of implicit data (Hu, Koren and Volinsky 2008). An observed pair weighs α |r| more than an
 * unobserved one, whose weight is `base`, and is preferred when r > 0. It adds w θ θᵀ to A and t θ to b:
 *
 *     w = α |r|        t = base + α r where r > 0, else 0
 *
 * Vector instructions read up to seven elements past the last rating, so both lists end in eight zeros.
 */

/**
 * Computes w and t of `count` ratings. `weights` and `targets` have room for `count` + 8 elements each,
 * rounded up to whole vectors.
 */
export function weighRatings(
  values: usize,
  count: i32,
  alpha: f32,
  base: f32,
  targets: usize,
  weights: usize,
): void {
  const bytes = <usize>count * WORD;
  const end = weights + bytes;
  const factor = f32x4.splat(alpha);
  const least = f32x4.splat(base);
  const zero = f32x4.splat(0);
  const targetsEnd = targets + bytes;
  for (; weights < end; weights += VECTOR) {
    const rating = v128.load(values);
    v128.store(weights, f32x4.mul(factor, f32x4.abs(rating)));
    v128.store(targets, v128.and(f32x4.gt(rating, zero), f32x4.add(least, f32x4.mul(factor, rating))));
    values += VECTOR;
    targets += VECTOR;
  }
  v128.store(end, zero);
  v128.store(end, zero, 16);
  v128.store(targetsEnd, zero);
  v128.store(targetsEnd, zero, 16);
}
