/**
 * Conjugate gradients for a group of long rows at once, tile by tile. Θ is cut into tiles that fit a core's
 * second-level cache. Each pass processes the ratings of all rows of the group in one tile before it
 * continues with the next tile. So a row of Θ is read from memory once for all rows of the group, in the
 * order of addresses, instead of once for each rating. Ratings are gathered from the cache in every pass,
 * without panels.
 *
 *     pass 0        r = Σ (r_uv - θ_vᵀx) θ_v - shift I x       endResidual
 *     passes 1 ..   q = Σ (θ_vᵀp) θ_v + shift I p              takeStep
 *     the last      pᵀA p                                      takeLastStep
 *
 * A group's ratings are stored row by row: the 16-bit number of θ_v in its tile, and r_uv. `starts`:
 * Int32[tiles + 1][rows], the first rating of each row in each tile. x, r, p, q and s of the rows are
 * adjacent, `size` bytes each. `states`: 48 bytes for each row.
 */
import { indexAt, sumLanes } from '../../simd';
import { allFinite, clear, dot, scale } from '../../vectors';
import { biasOf } from '../eliminate-bias';
import { beginSteps, endResidual, isConverged, lower, takeLastStep, takeStep } from '../steps';
import { addProducts, addResiduals, addSquares } from './products';

/**
 * Offsets in a row's state: its objective (float64) at 0, the numbers of steps.ts, and four lanes to which
 * passes add.
 */
const NUMBERS: usize = 8;
const LANES: usize = 32;

/**
 * Appends `count` ratings of a row to a group, starting at place `at` of the group's lists. Returns the tile
 * of the last rating.
 *
 * - `tile`: the tile of the row's previous rating, or -1.
 * - `starts`: the row's entry for tile 0; entries of consecutive tiles are `step` bytes apart.
 * - `locals` and `ratings`: the group's lists of numbers within tiles and of values.
 */
export function placeRatings(
  indices: usize,
  values: usize,
  count: i32,
  tileRows: i32,
  tile: i32,
  starts: usize,
  step: usize,
  at: i32,
  locals: usize,
  ratings: usize,
): i32 {
  let first = tile * tileRows;
  for (let k = 0; k < count;) {
    const index = <i32>indexAt(indices, k);
    while (index >= first + tileRows) {
      first += tileRows;
      tile++;
      store<i32>(starts + <usize>tile * step, at + k);
    }
    const local = locals + ((<usize>(at + k)) << 1);
    // Indices ascend: if the eighth is in this tile, all eight are.
    if (tile >= 0 && k + 8 <= count && <i32>indexAt(indices, k + 7) < first + tileRows) {
      const four = indices + ((<usize>k) << 2);
      const base = i32x4.splat(first);
      v128.store(
        local,
        i16x8.narrow_i32x4_u(i32x4.sub(v128.load(four), base), i32x4.sub(v128.load(four, 16), base)),
      );
      k += 8;
    } else {
      store<u16>(local, <u16>(index - first));
      k++;
    }
  }
  memory.copy(ratings + ((<usize>at) << 2), values, (<usize>count) << 2);
  return tile;
}

/** Before pass 0: r = -shift x, s = 0. */
export function startTiledRow(size: usize, shift: f32, x: usize, r: usize, sums: usize, state: usize): void {
  scale(r, -shift, x, size);
  if (sums) clear(sums, size);
  v128.store(state + LANES, f32x4.splat(0));
}

/** Reads a word of each cache line of a tile in order, so that the processor's prefetcher loads the tile. */
function prefetchTile(tile: usize, bytes: usize): u32 {
  let touched: u32 = 0;
  for (const end = tile + bytes; tile < end; tile += 64) touched += load<u32>(tile);
  return touched;
}

/**
 * One pass of all rows over the tiles [from, to).
 *
 * - `pass`: 0 computes residuals, 1 products, 2 curvatures pᵀA p.
 * - `p`: the rows' x in pass 0, else their p; `y`: their r in pass 0, else their q.
 * - `prefetches`: true if tiles are first loaded in order, which pays if most of their rows are read.
 * - `work`: 256 bytes, followed by a row of zeros.
 */
export function passTiles(
  theta: usize,
  size: usize,
  thetaRows: i32,
  tileRows: i32,
  from: i32,
  to: i32,
  rows: i32,
  starts: usize,
  locals: usize,
  ratings: usize,
  pass: i32,
  prefetches: bool,
  p: usize,
  y: usize,
  sums: usize,
  states: usize,
  work: usize,
): void {
  const step = (<usize>rows) << 2;
  const endOfRows = p + <usize>rows * size;
  let touched: u32 = 0;
  for (let t = from; t < to; t++) {
    const tile = theta + <usize>t * <usize>tileRows * size;
    if (prefetches) touched += prefetchTile(tile, <usize>min(tileRows, thetaRows - t * tileRows) * size);
    let start = starts + <usize>t * step;
    let direction = p;
    let target = y;
    let sum = sums;
    let lanes = states + LANES;
    for (; direction < endOfRows; direction += size) {
      const first = load<i32>(start);
      const count = load<i32>(start + step) - first;
      if (count > 0) {
        const local = locals + ((<usize>first) << 1);
        const rating = ratings + ((<usize>first) << 2);
        if (pass == 1) addProducts(tile, size, local, count, direction, target, work);
        else if (pass == 2)
          v128.store(lanes, addSquares(tile, size, local, count, direction, work, v128.load(lanes)));
        else
          v128.store(
            lanes,
            addResiduals(
              tile,
              size,
              local,
              rating,
              count,
              direction,
              target,
              sums ? sum : 0,
              work,
              v128.load(lanes),
            ),
          );
      }
      start += 4;
      target += size;
      sum += size;
      lanes += 48;
    }
  }
  store<u32>(work, touched);
}

/**
 * Prepares a pass after pass 0: q = shift p. If the row takes no further step, p becomes 0, so that passes
 * add nothing to it.
 */
@inline
function prepare(goesOn: bool, size: usize, shift: f32, p: usize, q: usize, state: usize): void {
  if (!goesOn) clear(p, size);
  scale(q, shift, p, size);
  v128.store(state + LANES, f32x4.splat(0));
}

/** After pass 0. */
export function beginTiledRow(
  size: usize,
  shift: f32,
  sums: usize,
  weight: f32,
  total: f32,
  x: usize,
  r: usize,
  p: usize,
  q: usize,
  state: usize,
): void {
  const numbers = state + NUMBERS;
  const biasSquares = endResidual(size, sums, weight, total, sumLanes(v128.load(state + LANES)), x, r, state);
  const rho = beginSteps(size, sums, biasSquares, r, p, numbers);
  prepare(!isConverged(rho, numbers), size, shift, p, q, state);
}

/** After a pass for products. */
export function stepTiledRow(
  size: usize,
  shift: f32,
  sums: usize,
  weight: f32,
  x: usize,
  r: usize,
  p: usize,
  q: usize,
  state: usize,
): void {
  const numbers = state + NUMBERS;
  const rho = takeStep(size, sums, weight, x, r, p, q, numbers, state);
  prepare(!(rho < 0 || isConverged(rho, numbers)), size, shift, p, q, state);
}

/**
 * Ends a row after the pass for curvatures: takes its last step, and writes its bias unless `bias` is 0.
 * Returns true if x is finite. The row's objective is then the first number of its state.
 */
export function endTiledRow(
  size: usize,
  shift: f32,
  sums: usize,
  weight: f32,
  total: f32,
  bias: usize,
  x: usize,
  p: usize,
  state: usize,
): bool {
  const curvature = sumLanes(v128.load(state + LANES)) + shift * dot(p, p, size);
  takeLastStep(size, sums, weight, curvature, x, p, state + NUMBERS, state);
  if (bias) {
    store<f32>(bias, biasOf(size, sums, weight, total, x));
    lower(state, total, weight);
  }
  return allFinite(x, size);
}
