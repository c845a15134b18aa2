/**
 * For each listed column of a row, computes its rank among all columns by the score xᵀθ, without storing the
 * scores: the number of columns with a higher score, and the number of its ties, the columns with the same
 * score (itself among them). Columns are processed in tiles, and each listed column counts them.
 *
 * The listed columns of a row are sorted, best first, in four arrays, from starts[row] to ends[row]:
 *
 *     scores   Float32   score of the column; NaN counts as -Infinity, which has no ties
 *     listed   Uint32
 *     counts   four Int32, whose sum is the number of columns with a higher score
 *     ties     Int32
 *
 * Each block of scores is compared with the worst listed column first, then with better ones, until no score
 * of the block is above the listed one. All code here computes scores in the same order of operations, so a
 * column's own score equals its listed score bit for bit.
 */
import { clearHeap, replaceRoot, sortHeap } from './heap';
import { multiplyAdd } from './simd';
import { packColumns, scoreBlock } from './top-n';

const COLUMNS: i32 = 8;

/** A group of rows with their listed columns. */
@unmanaged
export class ListedRows {
  /** Bytes of a row or column in memory. */
  size: usize;
  rank: i32;
  scores: usize;
  listed: usize;
  counts: usize;
  ties: usize;
  starts: usize;
  ends: usize;
  /** Float32[rows rounded up to 4], the lowest of each row's listed scores; Infinity for missing rows. */
  lows: usize;
  norms: usize;
  /** Of the columns of a tile, see boundColumns. */
  bounds: usize;
  /** Columns that are scored one by one, and their scores, with room for a multiple of eight. */
  newColumns: usize;
  newScores: usize;
  /** 32 * rank + 128 bytes. */
  work: usize;
  rowPanels: usize;
}

/**
 * Copies the factors of a row to place `at` in the panels of four rows (see top-n.ts), and its norm to
 * norms[at]. Writes zeros if the address `row` is 0.
 */
export function packRow(address: usize, row: usize, at: i32): void {
  const group = changetype<ListedRows>(address);
  const rank = group.rank;
  const target = group.rowPanels + (<usize>(at & ~3) * <usize>rank + <usize>(at & 3)) * 4;
  let squares: f64 = 0;
  for (let k: usize = 0; k < <usize>rank; k++) {
    const value: f32 = row ? load<f32>(row + (k << 2)) : 0;
    store<f32>(target + (k << 4), value);
    squares += <f64>value * <f64>value;
  }
  store<f32>(group.norms + ((<usize>at) << 2), <f32>sqrt(squares));
}

/** Writes, for every eight columns, the largest norm times `room`, a factor above 1 for rounding errors. */
export function boundColumns(address: usize, columnFactors: usize, columns: i32, room: f64): void {
  const group = changetype<ListedRows>(address);
  for (let first = 0; first < columns; first += COLUMNS) {
    let most: f64 = 0;
    for (let column = first; column < min(first + COLUMNS, columns); column++) {
      let squares: f64 = 0;
      for (let k: usize = 0; k < <usize>group.rank; k++) {
        const value = <f64>load<f32>(columnFactors + <usize>column * group.size + (k << 2));
        squares += value * value;
      }
      // max gives NaN if one of its arguments is NaN. A bound that is infinite or NaN is never below a score,
      // so its eight columns are always computed.
      most = max<f64>(most, squares);
    }
    store<f32>(group.bounds + ((<usize>(first >> 3)) << 2), <f32>(sqrt(most) * room));
  }
}

/** Computes the scores of one row and the first `count` new columns, given by their numbers. */
export function scoreListed(address: usize, row: usize, columnFactors: usize, count: i32): void {
  const group = changetype<ListedRows>(address);
  const rank = group.rank;
  const work = group.work;
  for (let first = 0; first < count; first += COLUMNS) {
    for (let lane = 0; lane < COLUMNS; lane++) {
      const column = load<u32>(group.newColumns + ((<usize>min(first + lane, count - 1)) << 2));
      const source = columnFactors + <usize>column * group.size;
      const target = work + ((<usize>lane) << 2);
      for (let k: usize = 0; k < <usize>rank; k++)
        store<f32>(target + (k << 5), load<f32>(source + (k << 2)));
    }
    let left = f32x4.splat(0);
    let right = left;
    for (let k: usize = 0; k < <usize>rank; k++) {
      const element = v128.load32_splat(row + (k << 2));
      left = multiplyAdd(element, v128.load(work + (k << 5)), left);
      right = multiplyAdd(element, v128.load(work + (k << 5), 16), right);
    }
    const scores = group.newScores + ((<usize>first) << 2);
    v128.store(scores, left);
    v128.store(scores, right, 16);
  }
}

/** Clears the list of a row, which has n listed columns from `start` on. */
export function beginList(address: usize, start: i32, n: i32): void {
  const group = changetype<ListedRows>(address);
  const at = (<usize>start) << 2;
  clearHeap(group.scores + at, group.listed + at, n);
}

/** Adds the first `count` new columns with their scores to a row's list, which has room for them. */
export function enterListed(address: usize, start: i32, n: i32, count: i32): void {
  const group = changetype<ListedRows>(address);
  const at = (<usize>start) << 2;
  for (let k: usize = 0; k < (<usize>count) << 2; k += 4) {
    const score = load<f32>(group.newScores + k);
    const entered: f32 = score == score ? score : -Infinity;
    replaceRoot(group.scores + at, group.listed + at, n, entered, load<u32>(group.newColumns + k));
  }
}

/** Sorts a list, best first, and clears its counts. */
export function finishList(address: usize, start: i32, n: i32): void {
  const group = changetype<ListedRows>(address);
  const at = (<usize>start) << 2;
  sortHeap(group.scores + at, group.listed + at, n);
  memory.fill(group.ties + at, 0, (<usize>n) << 2);
  memory.fill(group.counts + (at << 2), 0, (<usize>n) << 4);
}

/**
 * Compares `columns` columns, whose factors start at `columnFactors`, with the listed columns of all rows.
 * Adds the numbers of higher and of equal scores to the counts and ties of each listed column. Since xᵀθ <=
 * ‖x‖ ‖θ‖, the scores of eight columns and four rows are not computed if their bound is below the lowest
 * listed scores.
 */
export function countColumns(address: usize, rows: i32, columnFactors: usize, columns: i32): void {
  const group = changetype<ListedRows>(address);
  const size = group.size;
  const rank = group.rank;
  const norms = group.norms;
  const lows = group.lows;
  const work = group.work;
  const block = work + ((<usize>rank) << 5);
  for (let column = 0; column < columns; column += COLUMNS) {
    const count = min(columns - column, COLUMNS);
    packColumns(columnFactors + <usize>column * size, size, rank, count, work);
    const bound = v128.load32_splat(group.bounds + ((<usize>(column >> 3)) << 2));
    for (let row = 0; row < rows; row += 4) {
      const at = (<usize>row) << 2;
      // Comparisons with NaN are false: columns whose bound is NaN are computed.
      const most = f32x4.mul(v128.load(norms + at), bound);
      if (i32x4.all_true(f32x4.lt(most, v128.load(lows + at)))) continue;
      if (!scoreBlock(group.rowPanels + at * <usize>rank, work, rank, lows + at, block)) continue;
      for (let r = row; r < min(row + 4, rows); r++) {
        const own = block + ((<usize>(r - row)) << 5);
        for (let missing = count; missing < COLUMNS; missing++)
          store<f32>(own + ((<usize>missing) << 2), -Infinity);
        const start = load<i32>(group.starts + ((<usize>r) << 2));
        const end = load<i32>(group.ends + ((<usize>r) << 2));
        countBlock(own, start, end, group.scores, group.counts, group.ties);
      }
    }
  }
}

/**
 * Shortens the lists of all rows: removes each listed column for which at least `depth` better columns were
 * already counted, since its rank is then not needed. Lists are sorted best first, so these columns are at
 * the end. Writes `ends` and `lows`. Returns the number of rows whose lists are not empty.
 */
export function shortenLists(address: usize, rows: i32, depth: i32): i32 {
  const group = changetype<ListedRows>(address);
  let left = 0;
  for (let row = 0; row < rows; row++) {
    const at = (<usize>row) << 2;
    const start = load<i32>(group.starts + at);
    let end = load<i32>(group.ends + at);
    while (end > start && sumOf(group.counts + ((<usize>(end - 1)) << 4)) >= depth) end--;
    store<i32>(group.ends + at, end);
    store<f32>(group.lows + at, end > start ? load<f32>(group.scores + ((<usize>(end - 1)) << 2)) : Infinity);
    if (end > start) left++;
  }
  return left;
}

function sumOf(count: usize): i32 {
  return load<i32>(count) + load<i32>(count, 4) + load<i32>(count, 8) + load<i32>(count, 12);
}

/**
 * Compares eight columns, whose scores are at `block`, with the listed columns of one row, and adds to their
 * counts and ties.
 */
function countBlock(block: usize, start: i32, end: i32, scores: usize, counts: usize, ties: usize): void {
  const left = v128.load(block);
  const right = v128.load(block, 16);
  for (let k = end - 1; k >= start; k--) {
    const at = (<usize>k) << 2;
    const score = v128.load32_splat(scores + at);
    const leftAbove = f32x4.gt(left, score);
    const rightAbove = f32x4.gt(right, score);
    const equal = i32x4.bitmask(f32x4.eq(left, score)) | (i32x4.bitmask(f32x4.eq(right, score)) << 4);
    if (equal && load<f32>(scores + at) > -Infinity)
      store<i32>(ties + at, load<i32>(ties + at) + popcnt<i32>(equal));
    if (v128.any_true(v128.or(leftAbove, rightAbove))) {
      const count = counts + (at << 2);
      v128.store(count, i32x4.sub(i32x4.sub(v128.load(count), leftAbove), rightAbove));
    } else if (!equal) return;
  }
}

/**
 * Subtracts the first `count` new columns, which are excluded, from the counts and ties of the listed columns
 * start .. end - 1 of a row.
 */
export function discountListed(address: usize, count: i32, start: i32, end: i32): void {
  const group = changetype<ListedRows>(address);
  for (let i: usize = 0; i < <usize>count; i++) {
    const score = load<f32>(group.newScores + (i << 2));
    for (let k = end - 1; k >= start; k--) {
      const at = (<usize>k) << 2;
      const other = load<f32>(group.scores + at);
      const target = score > other ? group.counts + (at << 2) : group.ties + at;
      if (score > other || (score == other && score > -Infinity)) store<i32>(target, load<i32>(target) - 1);
      else if (score != other) break;
    }
  }
}
