/**
 * The loops of loading over ratings and over rows. They are compiled to a small module of their own, without
 * the code for training, and each thread runs it over a memory of its own. Addresses are bytes; indices, keys
 * and ratings have 4 bytes, sums and totals are float64. No state is kept between calls, and indices are not
 * checked.
 *
 * Ratings are first distributed to bands: sequences of adjacent rows that are then sorted one by one (see
 * operators/tasks/data-tasks.ts). The place of a row is a u32 with the row's band in its upper bits and the
 * row's number within the band in its lower `rowBits` bits.
 */
import { boundsOf, squaredDeviations, sumOf } from './vectors';

/** Replaces each of `count` numbers by the entry of the table that it indexes. */
export function lookUp(numbers: usize, count: u32, table: usize): void {
  const end = numbers + ((<usize>count) << 2);
  for (let at = numbers; at < end; at += 4) store<u32>(at, load<u32>(table + ((<usize>load<u32>(at)) << 2)));
}

/**
 * Writes the row of each rating with an index in [from, to) to `out`. The entry at `offsets` is the index of
 * the first rating of `row`. Returns the row of the last rating.
 */
export function numberRows(offsets: usize, row: u32, from: u32, to: u32, out: usize): u32 {
  let k = from;
  while (true) {
    offsets += 4;
    const end = min(load<u32>(offsets), to);
    for (; k < end; k++) {
      store<u32>(out, row);
      out += 4;
    }
    if (k >= to) break;
    row++;
  }
  return row;
}

/** Adds `count` ratings, given by the places of their rows, to the counts of their bands. */
export function countBands(places: usize, count: u32, rowBits: u32, counts: usize): void {
  const end = places + ((<usize>count) << 2);
  for (let at = places; at < end; at += 4) {
    const counter = counts + ((<usize>(load<u32>(at) >> rowBits)) << 2);
    store<u32>(counter, load<u32>(counter) + 1);
  }
}

/** Replaces each count by the sum of those before it. */
export function startsOf(counts: usize, count: u32): void {
  let sum: u32 = 0;
  const end = counts + ((<usize>count) << 2);
  for (let at = counts; at < end; at += 4) {
    const own = load<u32>(at);
    store<u32>(at, sum);
    sum += own;
  }
}

/**
 * Writes each rating to the next free index of its band. `cursors` has these indices, and they are
 * incremented. A rating is written as its value and a key of 32 bits: the row's number in the band, then the
 * column.
 */
export function scatter(
  places: usize,
  columns: usize,
  bits: usize,
  count: u32,
  rowBits: u32,
  columnBits: u32,
  cursors: usize,
  keys: usize,
  sortedBits: usize,
): void {
  const mask: u32 = (1 << rowBits) - 1;
  for (let k: usize = 0, end = (<usize>count) << 2; k < end; k += 4) {
    const place = load<u32>(places + k);
    const cursor = cursors + ((<usize>(place >> rowBits)) << 2);
    const next = load<u32>(cursor);
    store<u32>(cursor, next + 1);
    const at = (<usize>next) << 2;
    store<u32>(keys + at, ((place & mask) << columnBits) | load<u32>(columns + k));
    store<u32>(sortedBits + at, load<u32>(bits + k));
  }
}

/*
 * Sorts the ratings of a band by row and column. A key has the row's number in the band in its upper bits,
 * and the column in its lower `columnBits` bits. While ratings are sorted, a rating is a pair of 8 bytes, its
 * key and the bits of its value, so that each step writes to one address.
 */

/** Interleaves `count` keys and values to pairs. */
export function pairUp(keys: usize, bits: usize, count: u32, pairs: usize): void {
  const whole = (<usize>(count & ~3)) << 2;
  const end = (<usize>count) << 2;
  let k: usize = 0;
  for (; k < whole; k += 16) {
    const fourKeys = v128.load(keys + k);
    const fourBits = v128.load(bits + k);
    v128.store(pairs + 2 * k, v128.shuffle<i32>(fourKeys, fourBits, 0, 4, 1, 5));
    v128.store(pairs + 2 * k, v128.shuffle<i32>(fourKeys, fourBits, 2, 6, 3, 7), 16);
  }
  for (; k < end; k += 4) {
    store<u32>(pairs + 2 * k, load<u32>(keys + k));
    store<u32>(pairs + 2 * k, load<u32>(bits + k), 4);
  }
}

/**
 * A stable counting sort by one digit of the key: the `width` bits from bit `shift` on. `counters` has room
 * for a u32 for each value of the digit.
 */
export function sortByDigit(
  pairs: usize,
  count: u32,
  sorted: usize,
  shift: u32,
  width: u32,
  counters: usize,
): void {
  const values: u32 = 1 << width;
  const mask = values - 1;
  memory.fill(counters, 0, (<usize>values) << 2);
  const end = pairs + ((<usize>count) << 3);
  for (let at = pairs; at < end; at += 8) {
    const counter = counters + ((<usize>((load<u32>(at) >> shift) & mask)) << 2);
    store<u32>(counter, load<u32>(counter) + 1);
  }
  startsOf(counters, values);
  for (let at = pairs; at < end; at += 8) {
    const pair = load<u64>(at);
    const counter = counters + ((<usize>((<u32>pair >> shift) & mask)) << 2);
    const next = load<u32>(counter);
    store<u32>(counter, next + 1);
    store<u64>(sorted + ((<usize>next) << 3), pair);
  }
}

/** Splits sorted pairs into columns and values. Returns the number of keys that equal the previous key. */
export function takeApart(pairs: usize, count: u32, columnBits: u32, columns: usize, bits: usize): u32 {
  if (count == 0) return 0;
  const mask: u32 = (1 << columnBits) - 1;
  const masks = i32x4.splat(mask);
  let before = i32x4.splat(~load<u32>(pairs));
  let found = i32x4.splat(0);
  const whole = (<usize>(count & ~3)) << 2;
  const end = (<usize>count) << 2;
  let k: usize = 0;
  for (; k < whole; k += 16) {
    const low = v128.load(pairs + 2 * k);
    const high = v128.load(pairs + 2 * k, 16);
    const keys = v128.shuffle<i32>(low, high, 0, 2, 4, 6);
    found = i32x4.sub(found, i32x4.eq(keys, v128.shuffle<i32>(before, keys, 3, 4, 5, 6)));
    v128.store(columns + k, v128.and(keys, masks));
    v128.store(bits + k, v128.shuffle<i32>(low, high, 1, 3, 5, 7));
    before = keys;
  }
  let repeated =
    i32x4.extract_lane(found, 0) +
    i32x4.extract_lane(found, 1) +
    i32x4.extract_lane(found, 2) +
    i32x4.extract_lane(found, 3);
  for (let last = i32x4.extract_lane(before, 3); k < end; k += 4) {
    const key = load<i32>(pairs + 2 * k);
    if (key == last) repeated++;
    last = key;
    store<u32>(columns + k, key & mask);
    store<u32>(bits + k, load<u32>(pairs + 2 * k, 4));
  }
  return repeated;
}

/*
 * Sums of the ratings of rows, in float64. `offsets` has the index of each row's first rating among all
 * ratings of the block, and `values` starts with the rating of index `first`.
 */

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
