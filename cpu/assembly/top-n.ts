/**
 * Finds the n columns with the highest scores xᵀθ for each row of a group, a tile of columns at a time,
 * without storing the scores.
 *
 *     rowPanels    panels of four rows: [rank][4]; missing rows are zero
 *     columnPanel  eight columns: [rank][8], packed anew for each eight and used by all rows of the group
 *     thresholds   Float32[rows rounded up to 4]: score of the worst entry kept; Infinity for missing rows
 *     rowNorms     Float32[rows rounded up to 4]: ‖x‖
 *     bounds       Float32[columns / 8], or 0: entry i is the largest ‖θ‖ of all columns from 8 i on.
 *                  Since xᵀθ <= ‖x‖ ‖θ‖, a block whose bound is below all four thresholds is skipped:
 *                  most blocks, if columns are sorted by falling norm
 *     scores, items  one heap of n entries for each row (heap.ts)
 *     order        Uint32[columns], or 0: the item of each column
 *     mask         one byte for eight columns of one row, [column / 8][row]: bit b is set if column
 *                  8 * (column / 8) + b is left out
 *
 * A 4 x 8 block of scores is computed in registers and compared with the four thresholds there. Only few
 * blocks have a score that enters a heap (about n ln(columns / n) for each row, if columns are in random
 * order), so the cost of entering does not matter. Of equal scores the lower item is kept; without `order`, a
 * column is its own item.
 */
import { multiplyAdd } from './simd';
import { clearHeap, replaceRoot, sortHeap } from './heap';

/** Columns of a column panel: one byte of the mask. */
const COLUMNS: i32 = 8;

/** A group of rows. `size`: bytes of a row or column in memory. work: 32 * rank + 128 bytes. */
@unmanaged
export class TopNRows {
  size: usize;
  rank: i32;
  rows: i32;
  n: i32;
  rowPanels: usize;
  thresholds: usize;
  rowNorms: usize;
  scores: usize;
  items: usize;
  /** The column panel, and one block of scores. */
  work: usize;
}

/** Packs rows into panels and empties their heaps. */
export function beginTopN(address: usize, rowFactors: usize): void {
  const group = changetype<TopNRows>(address);
  const rank = group.rank;
  const rows = group.rows;
  const n = group.n;
  for (let row = 0; row < ((rows + 3) & ~3); row++) {
    const source = rowFactors + <usize>row * group.size;
    const target = group.rowPanels + (<usize>(row & ~3) * <usize>rank + <usize>(row & 3)) * 4;
    let squares: f64 = 0;
    for (let k: usize = 0; k < <usize>rank; k++) {
      const value: f32 = row < rows ? load<f32>(source + (k << 2)) : 0;
      store<f32>(target + (k << 4), value);
      squares += <f64>value * <f64>value;
    }
    store<f32>(group.rowNorms + ((<usize>row) << 2), <f32>sqrt(squares));
    store<f32>(group.thresholds + ((<usize>row) << 2), row < rows ? -Infinity : Infinity);
    const heap = (<usize>row * <usize>n) << 2;
    if (row < rows) clearHeap(group.scores + heap, group.items + heap, n);
  }
}

/** Packs eight columns as [rank][8] at `panel`. Columns from `count` on are zero. */
export function packColumns(columnFactors: usize, size: usize, rank: i32, count: i32, panel: usize): void {
  for (let column = 0; column < COLUMNS; column++) {
    const source = columnFactors + <usize>column * size;
    const target = panel + ((<usize>column) << 2);
    for (let k: usize = 0; k < <usize>rank; k++)
      store<f32>(target + (k << 5), column < count ? load<f32>(source + (k << 2)) : 0);
  }
}

/**
 * Computes 4 x 8 scores. If one of them reaches its row's threshold, stores all at `block` and returns true.
 */
export function scoreBlock(
  rowPanel: usize,
  columnPanel: usize,
  rank: i32,
  thresholds: usize,
  block: usize,
): bool {
  let sum00 = f32x4.splat(0);
  let sum01 = sum00;
  let sum10 = sum00;
  let sum11 = sum00;
  let sum20 = sum00;
  let sum21 = sum00;
  let sum30 = sum00;
  let sum31 = sum00;
  const end = rowPanel + ((<usize>rank) << 4);
  while (rowPanel < end) {
    const right0 = v128.load(columnPanel);
    const right1 = v128.load(columnPanel, 16);
    let element = v128.load32_splat(rowPanel);
    sum00 = multiplyAdd(element, right0, sum00);
    sum01 = multiplyAdd(element, right1, sum01);
    element = v128.load32_splat(rowPanel, 4);
    sum10 = multiplyAdd(element, right0, sum10);
    sum11 = multiplyAdd(element, right1, sum11);
    element = v128.load32_splat(rowPanel, 8);
    sum20 = multiplyAdd(element, right0, sum20);
    sum21 = multiplyAdd(element, right1, sum21);
    element = v128.load32_splat(rowPanel, 12);
    sum30 = multiplyAdd(element, right0, sum30);
    sum31 = multiplyAdd(element, right1, sum31);
    rowPanel += 16;
    columnPanel += 32;
  }
  let threshold = v128.load32_splat(thresholds);
  let above = v128.or(f32x4.ge(sum00, threshold), f32x4.ge(sum01, threshold));
  threshold = v128.load32_splat(thresholds, 4);
  above = v128.or(above, v128.or(f32x4.ge(sum10, threshold), f32x4.ge(sum11, threshold)));
  threshold = v128.load32_splat(thresholds, 8);
  above = v128.or(above, v128.or(f32x4.ge(sum20, threshold), f32x4.ge(sum21, threshold)));
  threshold = v128.load32_splat(thresholds, 12);
  above = v128.or(above, v128.or(f32x4.ge(sum30, threshold), f32x4.ge(sum31, threshold)));
  if (!v128.any_true(above)) return false;
  v128.store(block, sum00);
  v128.store(block, sum01, 16);
  v128.store(block, sum10, 32);
  v128.store(block, sum11, 48);
  v128.store(block, sum20, 64);
  v128.store(block, sum21, 80);
  v128.store(block, sum30, 96);
  v128.store(block, sum31, 112);
  return true;
}

/**
 * Enters the eight scores of a row at `block` into its heap, as far as they are among its n best. `left`: bit
 * b is set if column b is left out. `order`: the items of these columns, or 0.
 */
function enter(
  block: usize,
  left: u32,
  first: u32,
  order: usize,
  count: i32,
  threshold: usize,
  scores: usize,
  items: usize,
  n: i32,
): void {
  let worst = load<f32>(threshold);
  for (let column = 0; column < count; column++) {
    const score = load<f32>(block + ((<usize>column) << 2));
    if (!(score >= worst) || ((left >> column) & 1) != 0) continue;
    const item = order ? load<u32>(order + ((<usize>column) << 2)) : first + column;
    // An empty entry has the score -Infinity and is replaced by any other.
    if (score == worst && (item > load<u32>(items) || score == -Infinity)) continue;
    replaceRoot(scores, items, n, score, item);
    worst = load<f32>(scores);
  }
  store<f32>(threshold, worst);
}

/**
 * Computes the scores of the columns first .. first + columns - 1 for all rows, and enters the best into the
 * heaps. `first` is a multiple of 8, and the columns' factors start at `columnFactors`. `mask`, `bounds` and
 * `order` are for these columns, or 0.
 */
export function offerColumns(
  address: usize,
  columnFactors: usize,
  first: u32,
  columns: i32,
  mask: usize,
  bounds: usize,
  order: usize,
): void {
  const group = changetype<TopNRows>(address);
  const size = group.size;
  const rank = group.rank;
  const rows = group.rows;
  const n = group.n;
  const rowPanels = group.rowPanels;
  const thresholds = group.thresholds;
  const rowNorms = group.rowNorms;
  const work = group.work;
  const block = work + ((<usize>rank) << 5);
  for (let column = 0; column < columns; column += COLUMNS) {
    const count = min(columns - column, COLUMNS);
    packColumns(columnFactors + <usize>column * size, size, rank, count, work);
    const bound = bounds ? v128.load32_splat(bounds + ((<usize>(column >> 3)) << 2)) : f32x4.splat(0);
    for (let row = 0; row < rows; row += 4) {
      const threshold = thresholds + ((<usize>row) << 2);
      if (
        bounds &&
        !v128.any_true(
          f32x4.ge(f32x4.mul(v128.load(rowNorms + ((<usize>row) << 2)), bound), v128.load(threshold)),
        )
      )
        continue;
      const panel = rowPanels + ((<usize>row * <usize>rank) << 2);
      if (!scoreBlock(panel, work, rank, threshold, block)) continue;
      for (let r = row; r < min(row + 4, rows); r++) {
        const left: u32 = mask ? load<u8>(mask + <usize>((column >> 3) * rows + r)) : 0;
        const heap = (<usize>r * <usize>n) << 2;
        const at = (<usize>(r - row)) << 2;
        enter(
          block + (at << 3),
          left,
          first + column,
          order ? order + ((<usize>column) << 2) : 0,
          count,
          threshold + at,
          group.scores + heap,
          group.items + heap,
          n,
        );
      }
    }
  }
}

/** Sorts every row's list, best first. */
export function finishTopN(address: usize): void {
  const group = changetype<TopNRows>(address);
  for (let row = 0; row < group.rows; row++) {
    const heap = (<usize>row * <usize>group.n) << 2;
    sortHeap(group.scores + heap, group.items + heap, group.n);
  }
}
