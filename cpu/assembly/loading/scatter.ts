/**
 * Distributes ratings to bands: sequences of adjacent rows that are then sorted one by one (see
 * operators/tasks/data-tasks.ts). The place of a row is a u32 with the row's band in its upper bits and the
 * row's number within the band in its lower `rowBits` bits.
 */

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
