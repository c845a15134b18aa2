/**
 * Sorts the ratings of a band by row and column. A key has the row's number in the band in its upper bits,
 * and the column in its lower `columnBits` bits. While ratings are sorted, a rating is a pair of 8 bytes, its
 * key and the bits of its value, so that each step writes to one address.
 */
import { startsOf } from './scatter';

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
