/**
 * Finds the n columns with the highest scores xᵀθ_v for one query x, exactly, without reading most of the
 * exact data. d_v = θ_v - θ̄ is a column's difference from the mean of all columns, and columns are sorted by
 * falling ‖d_v‖. They are stored in two forms: θ_v in float32, and d̂_v, which is d_v rounded to 8 bits with
 * a scale for each column. x̂ is x rounded to 16 bits. With base = xᵀθ̄ there are two upper bounds:
 *
 *     xᵀθ_v  =  xᵀθ̄ + xᵀd_v  <=  base + ‖x‖ ‖d_v‖                             (1)
 *     xᵀd_v  <=  x̂ᵀd̂_v + ‖x‖ ‖d_v - d̂_v‖ + ‖x - x̂‖ ‖d̂_v‖                     (2)
 *
 * The search ends at the first column whose bound (1) is below the worst score of the list. Exact scores are
 * computed only for columns whose bound (2) reaches that score: some hundred of 100,000. They equal the
 * scores of top-n.ts bit for bit: products are summed in the order of features, with one multiply-add each.
 * Of equal scores the lower item is kept.
 *
 *     exact      Float32[columns][size / 4]
 *     coarse     Int8[columns][width], width a multiple of 16, padding 0
 *     guide      four rows of `stride` bytes: Float32 lengths >= ‖d̂_v‖ and ‖d_v‖, falling; Float32 remainders
 *                >= ‖d_v - d̂_v‖; Float32 scales of d̂_v; Uint32 items. Read four columns at a time;
 *                bytes after the last column do not matter
 *     x̂          Int16[width], times `step`
 *     bound      Float32: base, ‖x‖, ‖x - x̂‖, step, slack for rounding
 *     left       Uint32[leftCount], ascending: items to leave out
 *     mask       Uint8 by item: 1 for items that may be found; 0 as address: all
 */
import { clearHeap, replaceRoot, sortHeap } from './heap';
import { multiplyAdd, sumLanesOfFourWhole } from './simd';

/** xᵀθ, with the same order of operations as in top-n.ts. */
function score(query: usize, column: usize, rank: i32): f32 {
  let sum = f32x4.splat(0);
  const end = query + ((<usize>rank) << 2);
  while (query < end) {
    sum = multiplyAdd(v128.load32_splat(query), v128.load32_splat(column), sum);
    query += 4;
    column += 4;
  }
  return f32x4.extract_lane(sum, 0);
}

export function isLeftOut(item: u32, left: usize, count: i32): bool {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (load<u32>(left + ((<usize>middle) << 2)) < item) low = middle + 1;
    else high = middle;
  }
  return low < count && load<u32>(left + ((<usize>low) << 2)) == item;
}

/**
 * The arguments of a search. `size`, `width` and `stride`: bytes of a column of `exact` and of `coarse`, and of a
 * row of `guide`.
 */
@unmanaged
export class Search {
  query: usize;
  rank: i32;
  exact: usize;
  size: usize;
  coarseQuery: usize;
  coarse: usize;
  width: usize;
  bound: usize;
  guide: usize;
  stride: usize;
  columns: i32;
  left: usize;
  leftCount: i32;
  mask: usize;
  /** The list: n entries each. */
  n: i32;
  scores: usize;
  items: usize;
}

/** Computes the exact score of a column, and adds it to the list if it is among the n best. */
@inline
export function offer(search: Search, column: usize, item: u32): void {
  if (search.mask != 0 && load<u8>(search.mask + <usize>item) == 0) return;
  const value = score(search.query, column, search.rank);
  const scores = search.scores;
  const worst = load<f32>(scores);
  if (!(value >= worst)) return;
  // An empty entry has the score -Infinity and is replaced by any other.
  if (value == worst && (item > load<u32>(search.items) || value == -Infinity)) return;
  if (!isLeftOut(item, search.left, search.leftCount)) replaceRoot(scores, search.items, search.n, value, item);
}

/** sum += the products of 16 numbers of 8 bits with numbers of 16 bits, `low` and `high`. */
@inline
function addProducts(sum: v128, bytes: v128, low: v128, high: v128): v128 {
  const first = i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_s(bytes), low);
  return i32x4.add(sum, i32x4.add(first, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_s(bytes), high)));
}

/** x̂ᵀd̂ of four columns, as whole numbers that are multiples of step times the column's scale. */
@inline
export function coarseProducts(query: usize, column: usize, width: usize): v128 {
  let sum0 = i32x4.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  const end = column + width;
  while (column < end) {
    const low = v128.load(query);
    const high = v128.load(query, 16);
    sum0 = addProducts(sum0, v128.load(column), low, high);
    sum1 = addProducts(sum1, v128.load(column + width), low, high);
    sum2 = addProducts(sum2, v128.load(column + 2 * width), low, high);
    sum3 = addProducts(sum3, v128.load(column + 3 * width), low, high);
    query += 32;
    column += 16;
  }
  return f32x4.convert_i32x4_s(sumLanesOfFourWhole(sum0, sum1, sum2, sum3));
}

/**
 * Searches all columns. Returns the number of columns whose bounds were computed before the search ended.
 * The list is sorted at the end, best first. `address`: see Search.
 */
export function searchColumns(address: usize): i32 {
  const search = changetype<Search>(address);
  const scores = search.scores;
  const columns = search.columns;
  const stride = search.stride;
  const width = search.width;
  const bound = search.bound;
  clearHeap(scores, search.items, search.n);
  const slack = load<f32>(bound, 16);
  const base = load<f32>(bound) + slack;
  const length = load<f32>(bound, 4);
  const lengths = f32x4.splat(length);
  const missing = f32x4.splat(load<f32>(bound, 8));
  const step = f32x4.splat(load<f32>(bound, 12));
  const bases = f32x4.splat(base);
  let column = 0;
  for (; column < columns; column += 4) {
    const at = search.guide + ((<usize>column) << 2);
    const worst = load<f32>(scores);
    if (base + length * load<f32>(at) < worst) break;
    const products = coarseProducts(search.coarseQuery, search.coarse + <usize>column * width, width);
    let most = f32x4.add(bases, f32x4.mul(products, f32x4.mul(step, v128.load(at + 2 * stride))));
    most = f32x4.add(most, f32x4.mul(lengths, v128.load(at + stride)));
    most = f32x4.add(most, f32x4.mul(missing, v128.load(at)));
    // "Not below" instead of "at least", so that columns with a NaN bound are computed.
    let reach = i32x4.bitmask(v128.not(f32x4.lt(most, f32x4.splat(worst))));
    reach &= columns - column < 4 ? (1 << (columns - column)) - 1 : 15;
    while (reach != 0) {
      const lane = <usize>ctz(reach);
      reach &= reach - 1;
      const item = load<u32>(at + 3 * stride + (lane << 2));
      offer(search, search.exact + (<usize>column + lane) * search.size, item);
    }
  }
  sortHeap(scores, search.items, search.n);
  return min(column, columns);
}

/** Searches only the `count` columns listed in `chosen` (Uint32[count]), by their exact scores. */
export function searchChosen(address: usize, chosen: usize, count: i32): void {
  const search = changetype<Search>(address);
  const items = search.guide + 3 * search.stride;
  clearHeap(search.scores, search.items, search.n);
  for (let k = 0; k < count; k++) {
    const column = <usize>load<u32>(chosen + ((<usize>k) << 2));
    offer(search, search.exact + column * search.size, load<u32>(items + (column << 2)));
  }
  sortHeap(search.scores, search.items, search.n);
}
