/**
 * Searches vectors that are stored in lists. A list has the vectors nearest to its center c, as differences
 * d_v = θ_v - c in 8 bits, d̂_v, by falling ‖d_v‖. The bounds are the bounds of search.ts with the list's
 * center in place of the mean, and there is a lower bound, too:
 *
 *     | xᵀθ_v - (xᵀc + x̂ᵀd̂_v) |  <=  ‖x‖ ‖d_v - d̂_v‖ + ‖x - x̂‖ ‖d̂_v‖ + slack
 *
 * A heap has the n highest lower bounds. A column whose upper bound is below all of them is not among the n
 * best; all others are returned as candidates, whose exact scores are computed later.
 *
 *     centers    Float32[lists][size / 4], padding 0
 *     radii      Float32[lists]: ‖d_v‖ of the first column of each list
 *     coarse, guide, x̂, bound, left, mask: as in search.ts; `base` in `bound` is xᵀc. The columns of a list
 *                start at a multiple of four; the last ones, up to a multiple of four, have the item NONE
 *     found      {Uint32 column, Float32 upper bound}[room]
 */
import { NONE, clearHeap, replaceRoot, sortHeap } from './heap';
import { coarseProducts, isLeftOut, offer } from './search';
import { multiplyAdd, sumLanesOfFour } from './simd';

/**
 * Finds the n lists with the highest xᵀc + reach * radius, best first, equal ones by lower number. `query`
 * is padded with zeros to `size` bytes, and the centers to a multiple of four lists.
 */
export function rankLists(
  query: usize,
  centers: usize,
  size: usize,
  lists: i32,
  radii: usize,
  reach: f32,
  n: i32,
  scores: usize,
  numbers: usize,
): void {
  clearHeap(scores, numbers, n);
  const reaches = f32x4.splat(reach);
  for (let list = 0; list < lists; list += 4) {
    let center = centers + <usize>list * size;
    let sum0 = f32x4.splat(0);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    for (let k: usize = 0; k < size; k += 16) {
      const x = v128.load(query + k);
      sum0 = multiplyAdd(x, v128.load(center), sum0);
      sum1 = multiplyAdd(x, v128.load(center + size), sum1);
      sum2 = multiplyAdd(x, v128.load(center + 2 * size), sum2);
      sum3 = multiplyAdd(x, v128.load(center + 3 * size), sum3);
      center += 16;
    }
    const products = sumLanesOfFour(sum0, sum1, sum2, sum3);
    const all = f32x4.add(products, f32x4.mul(reaches, v128.load(radii + ((<usize>list) << 2))));
    let above = i32x4.bitmask(f32x4.gt(all, f32x4.splat(load<f32>(scores))));
    above &= lists - list < 4 ? (1 << (lists - list)) - 1 : 15;
    while (above != 0) {
      const lane = ctz(above);
      above &= above - 1;
      const score = laneOf(all, lane);
      if (score > load<f32>(scores)) replaceRoot(scores, numbers, n, score, list + lane);
    }
  }
  sortHeap(scores, numbers, n);
}

@inline
function laneOf(all: v128, lane: i32): f32 {
  if (lane == 0) return f32x4.extract_lane(all, 0);
  if (lane == 1) return f32x4.extract_lane(all, 1);
  if (lane == 2) return f32x4.extract_lane(all, 2);
  return f32x4.extract_lane(all, 3);
}

/**
 * Adds the candidates among the columns from .. to - 1 of one list to `found`, after the `count` candidates
 * that are there, and stops early if `room` is reached. Returns the number of candidates then; `next`
 * receives the first column that was not scanned. `lows`, `columns`: the heap of lower bounds.
 */
export function scanList(
  query: usize,
  width: usize,
  bound: usize,
  coarse: usize,
  guide: usize,
  stride: usize,
  from: i32,
  to: i32,
  left: usize,
  leftCount: i32,
  mask: usize,
  n: i32,
  lows: usize,
  columns: usize,
  found: usize,
  count: i32,
  room: i32,
  next: usize,
): i32 {
  const base = load<f32>(bound);
  const slack = load<f32>(bound, 16);
  const length = load<f32>(bound, 4);
  const bases = f32x4.splat(base);
  const slacks = f32x4.splat(slack);
  const lengths = f32x4.splat(length);
  const missing = f32x4.splat(load<f32>(bound, 8));
  const step = f32x4.splat(load<f32>(bound, 12));
  let column = from;
  for (; column < to && count + 4 <= room; column += 4) {
    const at = guide + ((<usize>column) << 2);
    const worst = load<f32>(lows);
    if (base + slack + length * load<f32>(at) < worst) {
      column = to;
      break;
    }
    const products = coarseProducts(query, coarse + <usize>column * width, width);
    const scores = f32x4.add(bases, f32x4.mul(products, f32x4.mul(step, v128.load(at + 2 * stride))));
    let errors = f32x4.add(slacks, f32x4.mul(lengths, v128.load(at + stride)));
    errors = f32x4.add(errors, f32x4.mul(missing, v128.load(at)));
    const uppers = f32x4.add(scores, errors);
    const lowers = f32x4.sub(scores, errors);
    // "Not below" instead of "at least", so that columns with a NaN bound are candidates.
    let reach = i32x4.bitmask(v128.not(f32x4.lt(uppers, f32x4.splat(worst))));
    while (reach != 0) {
      const lane = ctz(reach);
      reach &= reach - 1;
      const item = load<u32>(at + 3 * stride + ((<usize>lane) << 2));
      if (item == NONE || (mask != 0 && load<u8>(mask + <usize>item) == 0)) continue;
      if (isLeftOut(item, left, leftCount)) continue;
      const entry = found + ((<usize>count) << 3);
      store<u32>(entry, column + lane);
      store<f32>(entry, laneOf(uppers, lane), 4);
      count++;
      const low = laneOf(lowers, lane);
      if (low > load<f32>(lows)) replaceRoot(lows, columns, n, low, column + lane);
    }
  }
  store<i32>(next, column);
  return count;
}

/** The number of the columns from .. to - 1 whose items have a 1 in `mask`. */
export function countMasked(guide: usize, stride: usize, from: i32, to: i32, mask: usize): i32 {
  let count = 0;
  for (let column = from; column < to; column++) {
    const item = load<u32>(guide + 3 * stride + ((<usize>column) << 2));
    if (item != NONE) count += <i32>load<u8>(mask + <usize>item);
  }
  return count;
}

/** Empties a list of n entries. */
export function clearList(scores: usize, items: usize, n: i32): void {
  clearHeap(scores, items, n);
}

/** Sorts a list of n entries, best first. */
export function sortList(scores: usize, items: usize, n: i32): void {
  sortHeap(scores, items, n);
}

/** Adds the rows of θ, of `count`, that are among the list's n best by exact score. */
export function offerRows(
  query: usize,
  rank: i32,
  rows: usize,
  size: usize,
  numbers: usize,
  count: i32,
  n: i32,
  scores: usize,
  items: usize,
): void {
  for (let row: usize = 0; row < <usize>count; row++)
    offer(query, rows + row * size, rank, load<u32>(numbers + (row << 2)), 0, 0, 0, n, scores, items);
}
