/**
 * Loops over ids in a narrow range, and over tables that count the ratings of each id. The code of an id is
 * its distance from the least id. Ids and counts are int32, codes and positions uint32.
 */
import { VECTOR, WORD } from './simd';

/** Widens a range, the least and the greatest id as two int32 at `range`, so that it contains n more ids. */
export function widenRange(ids: usize, n: i32, range: usize): void {
  let least = load<i32>(range);
  let greatest = load<i32>(range, 4);
  let leasts = i32x4.splat(least);
  let greatests = i32x4.splat(greatest);
  let i = 0;
  for (; i + 4 <= n; i += 4, ids += VECTOR) {
    const four = v128.load(ids);
    leasts = i32x4.min_s(leasts, four);
    greatests = i32x4.max_s(greatests, four);
  }
  least = min(
    min(i32x4.extract_lane(leasts, 0), i32x4.extract_lane(leasts, 1)),
    min(i32x4.extract_lane(leasts, 2), i32x4.extract_lane(leasts, 3)),
  );
  greatest = max(
    max(i32x4.extract_lane(greatests, 0), i32x4.extract_lane(greatests, 1)),
    max(i32x4.extract_lane(greatests, 2), i32x4.extract_lane(greatests, 3)),
  );
  for (; i < n; i++, ids += WORD) {
    least = min(least, load<i32>(ids));
    greatest = max(greatest, load<i32>(ids));
  }
  store<i32>(range, least);
  store<i32>(range, greatest, 4);
}

/** Replaces n ids by their codes, the distances from the least id. */
export function subtractLeast(ids: usize, n: i32, least: i32): void {
  const leasts = i32x4.splat(least);
  let i = 0;
  for (; i + 4 <= n; i += 4, ids += VECTOR) v128.store(ids, i32x4.sub(v128.load(ids), leasts));
  for (; i < n; i++, ids += WORD) store<i32>(ids, load<i32>(ids) - least);
}

/**
 * Copies the low halves of n int64 to the first n words at `halves`, in place. Returns 1 if each id fits
 * int32, that is, if its high half only repeats the sign.
 */
export function takeLowHalves(halves: usize, n: i32): i32 {
  let difference = 0;
  let target = halves;
  for (let i = 0; i < n; i++, halves += 8, target += WORD) {
    const low = load<i32>(halves);
    difference |= load<i32>(halves, 4) ^ (low >> 31);
    store<i32>(target, low);
  }
  return <i32>(difference === 0);
}

/**
 * Counts n codes: entry c + shift of the table counts the code c. Codes outside the table's `entries` are
 * ignored.
 */
export function countCodes(codes: usize, n: i32, shift: i32, counts: usize, entries: i32): void {
  for (let i = 0; i < n; i++, codes += WORD) {
    const at = <u32>(load<i32>(codes) + shift);
    if (at >= <u32>entries) continue;
    const count = counts + ((<usize>at) << 2);
    store<i32>(count, load<i32>(count) + 1);
  }
}

/** counts += more */
export function addCounts(counts: usize, more: usize, n: i32): void {
  let i = 0;
  for (; i + 4 <= n; i += 4, counts += VECTOR, more += VECTOR)
    v128.store(counts, i32x4.add(v128.load(counts), v128.load(more)));
  for (; i < n; i++, counts += WORD, more += WORD) store<i32>(counts, load<i32>(counts) + load<i32>(more));
}

/** Number of entries of a table that are not 0. */
export function countUsed(counts: usize, n: i32): i32 {
  let used = 0;
  for (let i = 0; i < n; i++, counts += WORD) used += <i32>(load<i32>(counts) !== 0);
  return used;
}

/**
 * Numbers the ids whose counts are not 0, from `position` on. Entry i of `counts` belongs to the id first +
 * i. Outputs: `map`, the position of each entry, 0 where the count is 0; `ids` and `own`, the ids and counts
 * by position. Returns the next position.
 */
export function rankCounts(
  counts: usize,
  n: i32,
  position: i32,
  first: i32,
  map: usize,
  ids: usize,
  own: usize,
): i32 {
  for (let i = 0; i < n; i++, counts += WORD, map += WORD) {
    const count = load<i32>(counts);
    store<i32>(map, count === 0 ? 0 : position);
    if (count === 0) continue;
    store<i32>(ids, first + i);
    store<i32>(own, count);
    ids += WORD;
    own += WORD;
    position++;
  }
  return position;
}
