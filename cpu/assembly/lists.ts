/**
 * Searches vectors that are stored in lists. A list has the vectors nearest to its center c, as
 * differences d_v = R (θ_v - c) in 8 bits, d̂_v, by falling ‖d_v‖. R is a rotation
 * (cpu/tasks/lists/list-vectors.ts), and x̂ is R x in 16 bits, so that x̂ᵀd̂_v approximates xᵀ(θ_v - c). The bounds
 * are the bounds of search.ts with the list's center in place of the mean, and there is a lower bound, too:
 *
 *     | xᵀθ_v - (xᵀc + x̂ᵀd̂_v) |  <=  ‖x‖ ‖d_v - d̂_v‖ + ‖R x - x̂‖ ‖d̂_v‖ + slack
 *
 * A heap has the n highest lower bounds. A column whose upper bound is below all of them is not among the n
 * best; all others are returned as candidates, whose exact scores are computed later.
 *
 *     centers    Float32[lists][size / 4], padding 0
 *     radii      Float32[lists]: ‖d_v‖ of the first column of each list
 *     coarse, guide, x̂, left: as in search.ts. The columns of a list start at a multiple of four; the last
 *                ones, up to a multiple of four, have the item NONE
 *     mask       Uint8: a 1 for each column from `masked` on that may be found
 *     starts     Int32[lists + 1]: the first column of each list
 *     bound      ‖x‖, ‖R x - x̂‖, step of x̂, slack, and shift and inverse step of `table` (list-signs.ts)
 *     found      {Uint32 column, Float32 upper bound}[room]
 */
import { NONE, clearHeap, replaceRoot, sortHeap } from './heap';
import { Search, coarseProducts, isLeftOut, offer } from './search';
import { multiplyAdd, sumLanes, sumLanesOfFour } from './simd';

/**
 * Estimates of scores from signs. If not all lists are searched, most columns are left out by an
 * estimate of xᵀd_v from the signs of d̂_v, a bit for each feature: Σ_k ±x_k m_k ‖d_v‖, where m_k is the mean of
 * |d_k| / ‖d‖. A table has the sums of four features for each of their 16 patterns of signs, as whole numbers
 * 0 .. 15; one instruction reads an entry for each of 16 columns.
 *
 *     signs      blocks of 16 columns: byte b of all columns has the signs of features 8b .. 8b + 7
 *     table      Uint8[width / 4][16]: for features 4g .. 4g + 3
 *
 * ("Fast scan" with codes of a bit: André, Kermarrec, Le Scouarnec, "Quicker ADC", TPAMI 2021, and Gao, Long,
 * "RaBitQ", SIGMOD 2024, which rotates, too: x is the rotated query here.)
 */

/** Columns of one block of signs. */
export const BLOCK: i32 = 16;

/** Writes the signs of 8-bit numbers: a bit of 1 for each number below zero, in blocks (see `signs`). */
export function packSigns(coarse: usize, width: usize, columns: i32, signs: usize): void {
  const bytes = width >> 3;
  for (let column = 0; column < columns; column++) {
    const block = signs + <usize>(column / BLOCK) * bytes * BLOCK + <usize>(column % BLOCK);
    for (let at: usize = 0; at < bytes; at += 2) {
      const bits = i8x16.bitmask(v128.load(coarse + <usize>column * width + (at << 3)));
      store<u8>(block + at * BLOCK, <u8>bits);
      store<u8>(block + (at + 1) * BLOCK, <u8>(bits >> 8));
    }
  }
}

@inline
function lookUp(table: v128, places: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(table, places);
  return i8x16.swizzle(table, places);
}

/** A bit for each column of a block of signs whose sum of table entries is above `floor`. */
function columnsAbove(block: usize, bytes: usize, table: usize, floor: i32): i32 {
  let low = i16x8.splat(0);
  let high = low;
  const end = block + bytes * BLOCK;
  while (block < end) {
    // The sum of 16 entries, each at most 15, fits in a byte.
    const stop = min(end, block + 8 * BLOCK);
    let sums = i8x16.splat(0);
    while (block < stop) {
      const signs = v128.load(block);
      sums = i8x16.add(sums, lookUp(v128.load(table), v128.and(signs, i8x16.splat(15))));
      sums = i8x16.add(sums, lookUp(v128.load(table, 16), i8x16.shr_u(signs, 4)));
      block += 16;
      table += 32;
    }
    low = i16x8.add(low, i16x8.extend_low_i8x16_u(sums));
    high = i16x8.add(high, i16x8.extend_high_i8x16_u(sums));
  }
  const floors = i16x8.splat(<i16>floor);
  return i16x8.bitmask(i16x8.gt_s(low, floors)) | (i16x8.bitmask(i16x8.gt_s(high, floors)) << 8);
}

/**
 * A bit for each column of the block of `column` that can reach `worst` by its signs; without signs all.
 * `away`: how far `worst` is above xᵀc.
 */
@inline
export function likelyColumns(
  column: i32,
  away: f32,
  radius: f32,
  signs: usize,
  bytes: usize,
  table: usize,
  bound: usize,
): i32 {
  // Bounds that are not numbers leave out nothing.
  if (signs == 0 || !(away > 0) || !(radius > 0)) return 0xffff;
  const least = (away / radius + load<f32>(bound, 16)) * load<f32>(bound, 20);
  if (!(least > 0)) return 0xffff;
  if (least > 32767) return 0;
  return columnsAbove(signs + <usize>(column / BLOCK) * bytes * BLOCK, bytes, table, <i32>least);
}

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

/** xᵀc */
@inline
function centerProduct(query: usize, center: usize, size: usize): f32 {
  let sum = f32x4.splat(0);
  for (let k: usize = 0; k < size; k += 16)
    sum = multiplyAdd(v128.load(query + k), v128.load(center + k), sum);
  return sumLanes(sum);
}

/**
 * The arguments of scanLists. `size`, `width` and `stride`: bytes of a center, of a column in `coarse`, and of a
 * row of `guide`.
 */
@unmanaged
export class Scan {
  query: usize;
  centers: usize;
  size: usize;
  coarseQuery: usize;
  width: usize;
  bound: usize;
  coarse: usize;
  guide: usize;
  stride: usize;
  starts: usize;
  /** Int32: the lists to scan, in this order. */
  numbers: usize;
  /** 0: no column is left out by its signs. */
  signs: usize;
  table: usize;
  left: usize;
  leftCount: i32;
  /** 0: all columns may be found. */
  mask: usize;
  masked: i32;
  n: i32;
  /** The heap of lower bounds. */
  lows: usize;
  columns: usize;
  found: usize;
  room: i32;
  /** The place in `numbers` of the list to scan next, and its column to begin with (0: the first one). */
  next: i32;
  column: i32;
  /** The column to end before. */
  stop: i32;
}

/** Adds the columns among four that may be found to the candidates. `reach`: a bit for each that may be. */
@inline
function addCandidates(
  scan: Scan,
  reach: i32,
  uppers: v128,
  lowers: v128,
  column: i32,
  items: usize,
  count: i32,
): i32 {
  const mask = scan.mask;
  while (reach != 0) {
    const lane = ctz(reach);
    reach &= reach - 1;
    const item = load<u32>(items + ((<usize>lane) << 2));
    if (item == NONE || (mask != 0 && load<u8>(mask + <usize>(column + lane - scan.masked)) == 0)) continue;
    if (isLeftOut(item, scan.left, scan.leftCount)) continue;
    const entry = scan.found + ((<usize>count) << 3);
    store<u32>(entry, column + lane);
    store<f32>(entry, laneOf(uppers, lane), 4);
    count++;
    const low = laneOf(lowers, lane);
    if (low > load<f32>(scan.lows)) replaceRoot(scan.lows, scan.columns, scan.n, low, column + lane);
  }
  return count;
}

/**
 * Adds the candidates among the columns column .. stop - 1 of one block. `likely`: a bit for each that is not
 * left out by its signs. `base`: xᵀc of their list. Returns the number of candidates.
 */
@inline
function scanBlock(scan: Scan, base: f32, column: i32, stop: i32, likely: i32, count: i32): i32 {
  const stride = scan.stride;
  const width = scan.width;
  const bases = f32x4.splat(base);
  const lengths = f32x4.splat(load<f32>(scan.bound));
  const missing = f32x4.splat(load<f32>(scan.bound, 4));
  const step = f32x4.splat(load<f32>(scan.bound, 8));
  const slacks = f32x4.splat(load<f32>(scan.bound, 12));
  for (; column < stop; column += 4, likely >>= 4) {
    if ((likely & 15) == 0) continue;
    const at = scan.guide + (<usize>column << 2);
    const products = coarseProducts(scan.coarseQuery, scan.coarse + <usize>column * width, width);
    const scores = f32x4.add(bases, f32x4.mul(products, f32x4.mul(step, v128.load(at + 2 * stride))));
    let errors = f32x4.add(slacks, f32x4.mul(lengths, v128.load(at + stride)));
    errors = f32x4.add(errors, f32x4.mul(missing, v128.load(at)));
    const uppers = f32x4.add(scores, errors);
    const lowers = f32x4.sub(scores, errors);
    const worst = f32x4.splat(load<f32>(scan.lows));
    // "Not below" instead of "at least", so that columns with a NaN bound are candidates.
    const reach = likely & 15 & i32x4.bitmask(v128.not(f32x4.lt(uppers, worst)));
    count = addCandidates(scan, reach, uppers, lowers, column, at + 3 * stride, count);
  }
  return count;
}

/**
 * Adds the candidates among the columns of the lists numbers[next] .. numbers[end - 1] to `found`, after the
 * `count` candidates that are there, and stops early if `room` is reached. Returns the number of candidates
 * then; `next` and `column` of the arguments are the list and column that were not scanned. `address`: see
 * Scan.
 */
export function scanLists(address: usize, end: i32, count: i32): i32 {
  const scan = changetype<Scan>(address);
  const guide = scan.guide;
  const lows = scan.lows;
  const room = scan.room;
  const length = load<f32>(scan.bound);
  const slack = load<f32>(scan.bound, 12);
  const bytes = scan.width >> 3;
  let next = scan.next;
  let column = scan.column;
  for (; next < end; next++) {
    const list = load<i32>(scan.numbers + (<usize>next << 2));
    const start = scan.starts + (<usize>list << 2);
    const to = min(load<i32>(start, 4), scan.stop);
    if (column == 0) column = load<i32>(start);
    const base = centerProduct(scan.query, scan.centers + <usize>list * scan.size, scan.size);
    while (column < to) {
      const radius = load<f32>(guide + (<usize>column << 2));
      const worst = load<f32>(lows);
      if (base + slack + length * radius < worst) break;
      if (count + BLOCK > room) {
        scan.next = next;
        scan.column = column;
        return count;
      }
      let likely = likelyColumns(column, worst - base, radius, scan.signs, bytes, scan.table, scan.bound);
      likely >>= column % BLOCK;
      const stop = min(to, (column / BLOCK + 1) * BLOCK);
      if (likely != 0) count = scanBlock(scan, base, column, stop, likely, count);
      column = stop;
    }
    column = 0;
  }
  scan.next = next;
  scan.column = 0;
  return count;
}

/** Adds the rows of θ, of `count`, that are among the n best of a search by exact score. `numbers`: their items. */
export function offerRows(address: usize, rows: usize, numbers: usize, count: i32): void {
  const search = changetype<Search>(address);
  for (let row: usize = 0; row < <usize>count; row++)
    offer(search, rows + row * search.size, load<u32>(numbers + (row << 2)));
}
