/**
 * Passes over the ratings of a group of long rows, tile by tile. Θ is cut into tiles that fit a core's
 * second-level cache. Each pass processes the ratings of all rows of the group in one tile before it
 * continues with the next tile. So a row of Θ is read from memory once for all rows of the group, in the
 * order of addresses, instead of once for each rating. Ratings are gathered from the cache in every pass,
 * without panels. passes.ts has the steps between passes.
 *
 * LISTED ratings are processed at a time, since their rows of Θ then stay in the first-level cache. First the
 * products θᵀp are computed, four at a time. Then the rows are summed column by column, with the sums in
 * registers, so that nothing is stored between ratings. Sums over a list start at 0 and are then added to the
 * row's, so a row of a million ratings has no chain of a million roundings.
 */
import { VECTOR, indexAt, multiplyAdd, sumLanesOfFour } from '../simd';
import { CURVATURE, PRODUCT, RESIDUAL } from './passes';
import { PROBLEM_BYTES, RowProblem } from './problem';

/** The ratings of a group's rows, row by row: the 16-bit number of θ_v in its tile, and r_uv. */
@unmanaged
export class TileGroup {
  /** Numbers of rows of Θ and of a tile. */
  thetaRows: i32;
  tileRows: i32;
  rows: i32;
  /** Int32[tiles + 1][rows]: the first rating of each row in each tile. */
  starts: usize;
  locals: usize;
  ratings: usize;
  /** 1 if tiles are first loaded in order, which pays if most of their rows are read. */
  prefetches: i32;
  /** 256 bytes, followed by a vector of zeros. */
  work: usize;
}

/** A list has the addresses of LISTED rows of Θ, then at FACTORS their factors. */
const LISTED: i32 = 32;
const FACTORS: usize = 128;

/** Bytes of a list, which is followed by a row of zeros. */
const LIST: usize = 256;

/** Address of a row of the tile, whose 16-bit number is at `local`. */
@inline
function rowAt(tile: usize, size: usize, local: usize): usize {
  return tile + <usize>load<u16>(local) * size;
}

/** [θ_0ᵀp, .. θ_3ᵀp] of four rows. Even and odd columns are added in separate chains. */
@inline
function productsOfFour(row0: usize, row1: usize, row2: usize, row3: usize, p: usize, size: usize): v128 {
  let even0 = f32x4.splat(0);
  let even1 = even0;
  let even2 = even0;
  let even3 = even0;
  let odd0 = even0;
  let odd1 = even0;
  let odd2 = even0;
  let odd3 = even0;
  for (const end = p + size; p < end; p += 2 * VECTOR) {
    let factor = v128.load(p);
    even0 = multiplyAdd(v128.load(row0), factor, even0);
    even1 = multiplyAdd(v128.load(row1), factor, even1);
    even2 = multiplyAdd(v128.load(row2), factor, even2);
    even3 = multiplyAdd(v128.load(row3), factor, even3);
    factor = v128.load(p, 16);
    odd0 = multiplyAdd(v128.load(row0, 16), factor, odd0);
    odd1 = multiplyAdd(v128.load(row1, 16), factor, odd1);
    odd2 = multiplyAdd(v128.load(row2, 16), factor, odd2);
    odd3 = multiplyAdd(v128.load(row3, 16), factor, odd3);
    row0 += 2 * VECTOR;
    row1 += 2 * VECTOR;
    row2 += 2 * VECTOR;
    row3 += 2 * VECTOR;
  }
  return sumLanesOfFour(
    f32x4.add(even0, odd0),
    f32x4.add(even1, odd1),
    f32x4.add(even2, odd2),
    f32x4.add(even3, odd3),
  );
}

/** Adds four sums to those at `y` + `offset`. */
@inline
function addTo(y: usize, sum: v128, offset: usize = 0): void {
  v128.store(y + offset, f32x4.add(v128.load(y + offset), sum));
}

/**
 * y += Σ factors[k] θ_k over the list from `listed` to `end`, for some columns; if `summed`, also sums += Σ
 * θ_k. `vectors`: the number of vectors of four columns, 2, 4 or 8, and at most 4 if `summed`, so that the
 * sums fit the registers. `vectors` and `summed` are compile-time constants.
 */
@inline
function addColumns(
  listed: usize,
  end: usize,
  column: usize,
  y: usize,
  sums: usize,
  vectors: i32,
  summed: bool,
): void {
  let sum0 = f32x4.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  let sum4 = sum0;
  let sum5 = sum0;
  let sum6 = sum0;
  let sum7 = sum0;
  let plain0 = sum0;
  let plain1 = sum0;
  let plain2 = sum0;
  let plain3 = sum0;
  for (; listed < end; listed += 4) {
    const row = <usize>load<u32>(listed) + column;
    const factor = v128.load32_splat(listed, FACTORS);
    const theta0 = v128.load(row);
    sum0 = multiplyAdd(theta0, factor, sum0);
    if (summed) plain0 = f32x4.add(theta0, plain0);
    const theta1 = v128.load(row, 16);
    sum1 = multiplyAdd(theta1, factor, sum1);
    if (summed) plain1 = f32x4.add(theta1, plain1);
    if (vectors > 2) {
      const theta2 = v128.load(row, 32);
      sum2 = multiplyAdd(theta2, factor, sum2);
      if (summed) plain2 = f32x4.add(theta2, plain2);
      const theta3 = v128.load(row, 48);
      sum3 = multiplyAdd(theta3, factor, sum3);
      if (summed) plain3 = f32x4.add(theta3, plain3);
    }
    if (vectors > 4) {
      sum4 = multiplyAdd(v128.load(row, 64), factor, sum4);
      sum5 = multiplyAdd(v128.load(row, 80), factor, sum5);
      sum6 = multiplyAdd(v128.load(row, 96), factor, sum6);
      sum7 = multiplyAdd(v128.load(row, 112), factor, sum7);
    }
  }
  addTo(y, sum0);
  addTo(y, sum1, 16);
  if (vectors > 2) {
    addTo(y, sum2, 32);
    addTo(y, sum3, 48);
  }
  if (vectors > 4) {
    addTo(y, sum4, 64);
    addTo(y, sum5, 80);
    addTo(y, sum6, 96);
    addTo(y, sum7, 112);
  }
  if (!summed) return;
  addTo(sums, plain0);
  addTo(sums, plain1, 16);
  if (vectors > 2) {
    addTo(sums, plain2, 32);
    addTo(sums, plain3, 48);
  }
}

/** y += Σ factors[k] θ_k over the first `count` rows of the list. If `sums` is not 0, also sums += Σ θ_k. */
function addListed(list: usize, count: i32, size: usize, y: usize, sums: usize): void {
  const end = list + ((<usize>count) << 2);
  let column: usize = 0;
  if (sums) {
    for (; column + 4 * VECTOR <= size; column += 4 * VECTOR)
      addColumns(list, end, column, y + column, sums + column, 4, true);
    if (column < size) addColumns(list, end, column, y + column, sums + column, 2, true);
    return;
  }
  for (; column + 8 * VECTOR <= size; column += 8 * VECTOR)
    addColumns(list, end, column, y + column, 0, 8, false);
  if (column + 4 * VECTOR <= size) {
    addColumns(list, end, column, y + column, 0, 4, false);
    column += 4 * VECTOR;
  }
  if (column < size) addColumns(list, end, column, y + column, 0, 2, false);
}

/**
 * One pass of a row over `count` > 0 of its ratings, all in one tile; `which` is a compile-time constant:
 *
 *     RESIDUAL     r += Σ (r_uv - θᵀx) θ, s += Σ θ if the row has s, and lanes += Σ r_uv θᵀx
 *     PRODUCT      q += Σ (θᵀp) θ
 *     CURVATURE    lanes += Σ (θᵀp)²
 *
 * `locals`: the numbers of the ratings' θ within the tile. `values` may be read up to 12 bytes past the last
 * rating. work: 256 bytes, followed by a row of zeros.
 */
@inline
function passRatings(
  row: RowProblem,
  which: i32,
  tile: usize,
  locals: usize,
  values: usize,
  count: i32,
  work: usize,
): void {
  const size = row.size;
  const residual = which == RESIDUAL;
  const added = which != CURVATURE;
  const p = residual ? row.x : row.p;
  const y = residual ? row.r : row.q;
  const sums: usize = residual ? row.sums : 0;
  let along = row.lanes;
  const zeros = work + LIST;
  while (count > 0) {
    const listed = min(count, LISTED);
    let list = work;
    let left = listed;
    for (; left >= 4; left -= 4) {
      const row0 = rowAt(tile, size, locals);
      const row1 = rowAt(tile, size, locals + 2);
      const row2 = rowAt(tile, size, locals + 4);
      const row3 = rowAt(tile, size, locals + 6);
      let products = productsOfFour(row0, row1, row2, row3, p, size);
      if (residual) {
        const ratings = v128.load(values);
        along = multiplyAdd(ratings, products, along);
        products = f32x4.sub(ratings, products);
        values += 16;
      }
      if (added) {
        store<u32>(list, <u32>row0);
        store<u32>(list, <u32>row1, 4);
        store<u32>(list, <u32>row2, 8);
        store<u32>(list, <u32>row3, 12);
        v128.store(list, products, FACTORS);
        list += 16;
      } else {
        along = multiplyAdd(products, products, along);
      }
      locals += 8;
    }
    if (left > 0) {
      // Rows past the last rating are zero, and so are their ratings.
      const row0 = rowAt(tile, size, locals);
      const row1 = left > 1 ? rowAt(tile, size, locals + 2) : zeros;
      const row2 = left > 2 ? rowAt(tile, size, locals + 4) : zeros;
      let products = productsOfFour(row0, row1, row2, zeros, p, size);
      if (residual) {
        const ratings = v128.and(v128.load(values), i32x4.lt_s(i32x4(0, 1, 2, 3), i32x4.splat(left)));
        along = multiplyAdd(ratings, products, along);
        products = f32x4.sub(ratings, products);
      }
      if (added) {
        store<u32>(list, <u32>row0);
        store<u32>(list, <u32>row1, 4);
        store<u32>(list, <u32>row2, 8);
        v128.store(list, products, FACTORS);
      } else {
        along = multiplyAdd(products, products, along);
      }
    }
    if (added) addListed(work, listed, size, y, sums);
    count -= listed;
  }
  if (which != PRODUCT) row.lanes = along;
}

function passResiduals(row: RowProblem, tile: usize, locals: usize, values: usize, count: i32, work: usize): void {
  passRatings(row, RESIDUAL, tile, locals, values, count, work);
}

function passProducts(row: RowProblem, tile: usize, locals: usize, count: i32, work: usize): void {
  passRatings(row, PRODUCT, tile, locals, 0, count, work);
}

function passSquares(row: RowProblem, tile: usize, locals: usize, count: i32, work: usize): void {
  passRatings(row, CURVATURE, tile, locals, 0, count, work);
}

/**
 * Appends `count` ratings of row number `row` to a group, starting at place `at` of the group's lists.
 * `tile`: the tile of the row's previous rating, or -1. Returns the tile of the last rating.
 */
export function placeRatings(
  group: usize,
  row: i32,
  indices: usize,
  values: usize,
  count: i32,
  tile: i32,
  at: i32,
): i32 {
  const tiles = changetype<TileGroup>(group);
  const tileRows = tiles.tileRows;
  const locals = tiles.locals;
  const step = (<usize>tiles.rows) << 2;
  const starts = tiles.starts + ((<usize>row) << 2);
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
  memory.copy(tiles.ratings + ((<usize>at) << 2), values, (<usize>count) << 2);
  return tile;
}

/** Reads a word of each cache line of a tile in order, so that the processor's prefetcher loads the tile. */
function prefetchTile(tile: usize, bytes: usize): u32 {
  let touched: u32 = 0;
  for (const end = tile + bytes; tile < end; tile += 64) touched += load<u32>(tile);
  return touched;
}

/**
 * One pass (passes.ts) of all rows over the tiles [from, to). `problems`: the rows' RowProblem, one after the
 * other.
 */
export function passTiles(group: usize, problems: usize, pass: i32, from: i32, to: i32): void {
  const tiles = changetype<TileGroup>(group);
  const rows = tiles.rows;
  const work = tiles.work;
  const theta = changetype<RowProblem>(problems).theta;
  const size = changetype<RowProblem>(problems).size;
  const tileBytes = <usize>tiles.tileRows * size;
  const step = (<usize>rows) << 2;
  let touched: u32 = 0;
  for (let t = from; t < to; t++) {
    const tile = theta + <usize>t * tileBytes;
    if (tiles.prefetches)
      touched += prefetchTile(tile, <usize>min(tiles.tileRows, tiles.thetaRows - t * tiles.tileRows) * size);
    let start = tiles.starts + <usize>t * step;
    let problem = problems;
    for (let k = 0; k < rows; k++) {
      const first = load<i32>(start);
      const count = load<i32>(start + step) - first;
      if (count > 0) {
        const row = changetype<RowProblem>(problem);
        const local = tiles.locals + ((<usize>first) << 1);
        const rating = tiles.ratings + ((<usize>first) << 2);
        if (pass == PRODUCT) passProducts(row, tile, local, count, work);
        else if (pass == CURVATURE) passSquares(row, tile, local, count, work);
        else passResiduals(row, tile, local, rating, count, work);
      }
      start += 4;
      problem += PROBLEM_BYTES;
    }
  }
  store<u32>(work, touched);
}
