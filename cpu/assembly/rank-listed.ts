/**
 * For each listed column of a row, computes its rank among all columns by the score xᵀθ, without storing the
 * scores: the number of columns with a higher score, and the number of its ties, the columns with the same
 * score (itself among them). Columns are processed in tiles, and each listed column counts them.
 *
 * The listed columns of a row are sorted, best first, in four arrays, from starts[row] to ends[row]:
 *
 *     scores   Float32   score of the column; NaN counts as -Infinity, which has no ties
 *     columns  Uint32
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

/**
 * Copies the factors of a row to place `at` in the panels of four rows (see top-n.ts), and its norm to
 * norms[at]. Writes zeros if the address `row` is 0.
 */
export function packRow(row: usize, rank: i32, rowPanels: usize, norms: usize, at: i32): void {
  const target = rowPanels + (<usize>(at & ~3) * <usize>rank + <usize>(at & 3)) * 4;
  let squares: f64 = 0;
  for (let k: usize = 0; k < <usize>rank; k++) {
    const value: f32 = row ? load<f32>(row + (k << 2)) : 0;
    store<f32>(target + (k << 4), value);
    squares += <f64>value * <f64>value;
  }
  store<f32>(norms + ((<usize>at) << 2), <f32>sqrt(squares));
}

/** Writes, for every eight columns, the largest norm times `room`, a factor above 1 for rounding errors. */
export function boundColumns(
  columnFactors: usize,
  size: usize,
  rank: i32,
  columns: i32,
  room: f64,
  bounds: usize,
): void {
  for (let first = 0; first < columns; first += COLUMNS) {
    let most: f64 = 0;
    for (let column = first; column < min(first + COLUMNS, columns); column++) {
      let squares: f64 = 0;
      for (let k: usize = 0; k < <usize>rank; k++) {
        const value = <f64>load<f32>(columnFactors + <usize>column * size + (k << 2));
        squares += value * value;
      }
      // max gives NaN if one of its arguments is NaN. A bound that is infinite or NaN is never below a score,
      // so its eight columns are always computed.
      most = max<f64>(most, squares);
    }
    store<f32>(bounds + ((<usize>(first >> 3)) << 2), <f32>(sqrt(most) * room));
  }
}

/**
 * Computes the scores of one row and `count` columns, given by their numbers. `scores` has room for `count`
 * rounded up to a multiple of eight. work: 32 * rank bytes.
 */
export function scoreListed(
  row: usize,
  rank: i32,
  columnFactors: usize,
  size: usize,
  columns: usize,
  count: i32,
  work: usize,
  scores: usize,
): void {
  for (let first = 0; first < count; first += COLUMNS) {
    for (let lane = 0; lane < COLUMNS; lane++) {
      const column = load<u32>(columns + ((<usize>min(first + lane, count - 1)) << 2));
      const source = columnFactors + <usize>column * size;
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
    v128.store(scores + ((<usize>first) << 2), left);
    v128.store(scores + ((<usize>first) << 2), right, 16);
  }
}

/** Clears the list of a row, which has n listed columns. */
export function beginList(scores: usize, columns: usize, n: i32): void {
  clearHeap(scores, columns, n);
}

/** Adds `count` columns with their scores to a row's list, which has room for them. */
export function enterListed(
  scores: usize,
  columns: usize,
  n: i32,
  newScores: usize,
  newColumns: usize,
  count: i32,
): void {
  for (let k: usize = 0; k < <usize>count; k++) {
    const score = load<f32>(newScores + (k << 2));
    replaceRoot(scores, columns, n, score == score ? score : -Infinity, load<u32>(newColumns + (k << 2)));
  }
}

/** Sorts a list, best first, and clears its counts. */
export function finishList(scores: usize, columns: usize, counts: usize, ties: usize, n: i32): void {
  sortHeap(scores, columns, n);
  for (let k: usize = 0; k < <usize>n; k++) {
    store<i32>(ties + (k << 2), 0);
    v128.store(counts + (k << 4), i32x4.splat(0));
  }
}

/**
 * Compares `columns` columns, whose factors start at `columnFactors`, with the listed columns of all rows.
 * Adds the numbers of higher and of equal scores to the counts and ties of each listed column.
 *
 * - `lows`: Float32[rows rounded up to 4], the lowest of each row's listed scores; Infinity for missing rows.
 * - `bounds`: of these columns, see boundColumns. Since xᵀθ <= ‖x‖ ‖θ‖, the scores of eight columns and four
 *   rows are not computed if their bound is below the lowest listed scores.
 * - `work`: 32 * rank + 128 bytes.
 */
export function countColumns(
  rowPanels: usize,
  rows: i32,
  columnFactors: usize,
  size: usize,
  rank: i32,
  columns: i32,
  norms: usize,
  bounds: usize,
  lows: usize,
  starts: usize,
  ends: usize,
  scores: usize,
  counts: usize,
  ties: usize,
  work: usize,
): void {
  const block = work + ((<usize>rank) << 5);
  for (let column = 0; column < columns; column += COLUMNS) {
    const count = min(columns - column, COLUMNS);
    packColumns(columnFactors + <usize>column * size, size, rank, count, work);
    const bound = v128.load32_splat(bounds + ((<usize>(column >> 3)) << 2));
    for (let row = 0; row < rows; row += 4) {
      const at = (<usize>row) << 2;
      // Comparisons with NaN are false: columns whose bound is NaN are computed.
      if (i32x4.all_true(f32x4.lt(f32x4.mul(v128.load(norms + at), bound), v128.load(lows + at)))) continue;
      if (
        !scoreBlock(
          rowPanels + ((<usize>row * <usize>rank) << 2),
          work,
          rank,
          lows + ((<usize>row) << 2),
          block,
        )
      )
        continue;
      for (let r = row; r < min(row + 4, rows); r++) {
        const own = block + ((<usize>(r - row)) << 5);
        for (let missing = count; missing < COLUMNS; missing++)
          store<f32>(own + ((<usize>missing) << 2), -Infinity);
        const start = load<i32>(starts + ((<usize>r) << 2));
        const end = load<i32>(ends + ((<usize>r) << 2));
        countBlock(own, start, end, scores, counts, ties);
      }
    }
  }
}

/**
 * Shortens the lists of all rows: removes each listed column for which at least `depth` better columns were
 * already counted, since its rank is then not needed. Lists are sorted best first, so these columns are at
 * the end.
 *
 * - `ends`: the new end of each row's list is written here.
 * - `lows`: the lowest score that is left in each row's list is written here; Infinity for an empty list.
 *
 * Returns the number of rows whose lists are not empty.
 */
export function shortenLists(
  rows: i32,
  starts: usize,
  ends: usize,
  lows: usize,
  scores: usize,
  counts: usize,
  depth: i32,
): i32 {
  let left = 0;
  for (let row = 0; row < rows; row++) {
    const at = (<usize>row) << 2;
    const start = load<i32>(starts + at);
    let end = load<i32>(ends + at);
    while (end > start && sumOf(counts + ((<usize>(end - 1)) << 4)) >= depth) end--;
    store<i32>(ends + at, end);
    store<f32>(lows + at, end > start ? load<f32>(scores + ((<usize>(end - 1)) << 2)) : Infinity);
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
 * Subtracts `count` excluded columns, given by their scores, from the counts and ties of the listed columns
 * start .. end - 1 of a row.
 */
export function discountListed(
  newScores: usize,
  count: i32,
  start: i32,
  end: i32,
  scores: usize,
  counts: usize,
  ties: usize,
): void {
  for (let i: usize = 0; i < <usize>count; i++) {
    const score = load<f32>(newScores + (i << 2));
    for (let k = end - 1; k >= start; k--) {
      const at = (<usize>k) << 2;
      const other = load<f32>(scores + at);
      const target = score > other ? counts + (at << 2) : ties + at;
      if (score > other || (score == other && score > -Infinity)) store<i32>(target, load<i32>(target) - 1);
      else if (score != other) break;
    }
  }
}
