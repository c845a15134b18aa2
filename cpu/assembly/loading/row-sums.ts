/**
 * Sums of the ratings of rows, in float64. `offsets` has the index of each row's first rating among all
 * ratings of the block, and `values` starts with the rating of index `first`.
 */
import { boundsOf, squaredDeviations, sumOf } from '../vectors';

/** Offsets of the totals of sumRows: seven float64. */
const LEAST: usize = 0;
const MOST: usize = 8;
const BROKEN: usize = 16;
const COUNT: usize = 24;
const MEAN: usize = 32;
const SQUARES: usize = 40;
const BOUNDS: usize = 48;

/**
 * Adds the ratings with indices [first, end) to the sums of their rows (`sums`, float64[rows]) and to the
 * totals: least, most, number of rows with a rating that is not whole, number of ratings, mean, and squares Σ
 * (r - mean)². Mean and squares are merged row by row (Chan, Golub and LeVeque 1979, Updating formulae and a
 * pairwise algorithm for computing sample variances).
 */
export function sumRows(
  values: usize,
  offsets: usize,
  rows: u32,
  first: u32,
  end: u32,
  sums: usize,
  totals: usize,
): void {
  for (let row: u32 = 0; row < rows; row++) {
    const from = max(load<u32>(offsets + ((<usize>row) << 2)), first);
    const to = min(load<u32>(offsets + ((<usize>row) << 2), 4), end);
    if (from >= to) continue;
    const length = <i32>(to - from);
    const at = values + ((<usize>(from - first)) << 2);
    const own = sumOf(at, length);
    if (!boundsOf(at, length, totals + BOUNDS)) store<f64>(totals + BROKEN, load<f64>(totals + BROKEN) + 1);
    store<f64>(totals + LEAST, min<f64>(load<f64>(totals + LEAST), load<f32>(totals + BOUNDS)));
    store<f64>(totals + MOST, max<f64>(load<f64>(totals + MOST), load<f32>(totals + BOUNDS, 4)));
    const count = load<f64>(totals + COUNT);
    const mean = load<f64>(totals + MEAN);
    const between = own / <f64>length - mean;
    const squares =
      squaredDeviations(at, length, own / <f64>length) +
      (between * between * count * <f64>length) / (count + <f64>length);
    store<f64>(totals + SQUARES, load<f64>(totals + SQUARES) + squares);
    store<f64>(totals + COUNT, count + <f64>length);
    store<f64>(totals + MEAN, mean + (between * <f64>length) / (count + <f64>length));
    store<f64>(sums + ((<usize>row) << 3), load<f64>(sums + ((<usize>row) << 3)) + own);
  }
}

/** Adds `sums` to `others`, element by element, and returns the total of `sums`. */
export function addSums(sums: usize, rows: u32, others: usize): f64 {
  let total: f64 = 0;
  for (let at: usize = 0, end = (<usize>rows) << 3; at < end; at += 8) {
    const sum = load<f64>(sums + at);
    total += sum;
    store<f64>(others + at, load<f64>(others + at) + sum);
  }
  return total;
}

/**
 * For each row, adds Σ (r - mean - the column's mean) over its ratings with indices [first, end) to `sums`,
 * in order. `means`: Float32, the column's mean for each rating.
 */
export function sumApart(
  values: usize,
  means: usize,
  offsets: usize,
  rows: u32,
  first: u32,
  end: u32,
  mean: f64,
  sums: usize,
): void {
  for (let row: u32 = 0; row < rows; row++) {
    const from = max(load<u32>(offsets + ((<usize>row) << 2)), first);
    const to = min(load<u32>(offsets + ((<usize>row) << 2), 4), end);
    if (from >= to) continue;
    let sum = load<f64>(sums + ((<usize>row) << 3));
    for (let k = (<usize>(from - first)) << 2, last = (<usize>(to - first)) << 2; k < last; k += 4)
      sum += <f64>load<f32>(values + k) - mean - <f64>load<f32>(means + k);
    store<f64>(sums + ((<usize>row) << 3), sum);
  }
}

/** Divides each sum by the row's number of ratings plus `damping`, as float32. */
export function dampSums(sums: usize, offsets: usize, rows: u32, damping: f64, means: usize): void {
  for (let row: usize = 0; row < <usize>rows; row++) {
    const count = <f64>(load<u32>(offsets + (row << 2), 4) - load<u32>(offsets + (row << 2)));
    store<f32>(means + (row << 2), <f32>(load<f64>(sums + (row << 3)) / (count + damping)));
  }
}
