/** A band's ratings by row and column. A key is the row's number in the band above the column, which has `columnBits` bits. */
import { startsOf } from './scatter';

/** A stable counting sort by one digit of the key, which has `values` values. `counters`: a number for each. */
export function sortByDigit(keys: usize, bits: usize, count: u32, sortedKeys: usize, sortedBits: usize, shift: u32, values: u32, counters: usize): void {
  memory.fill(counters, 0, <usize>values << 2);
  const mask: u32 = values > 1 ? 0xffffffff >> clz(values - 1) : 0;
  const end = <usize>count << 2;
  for (let k: usize = 0; k < end; k += 4) {
    const counter = counters + (<usize>((load<u32>(keys + k) >> shift) & mask) << 2);
    store<u32>(counter, load<u32>(counter) + 1);
  }
  startsOf(counters, values);
  for (let k: usize = 0; k < end; k += 4) {
    const key = load<u32>(keys + k);
    const counter = counters + (<usize>((key >> shift) & mask) << 2);
    const next = load<u32>(counter);
    store<u32>(counter, next + 1);
    const at = <usize>next << 2;
    store<u32>(sortedKeys + at, key);
    store<u32>(sortedBits + at, load<u32>(bits + k));
  }
}

/** Each rating to the next place of its row, counted from `first`: `cursors` has those of the band's rows and counts them up. */
export function placeRows(keys: usize, bits: usize, count: u32, cursors: usize, first: u32, columnBits: u32, sortedKeys: usize, sortedBits: usize): void {
  for (let k: usize = 0, end = <usize>count << 2; k < end; k += 4) {
    const key = load<u32>(keys + k);
    const cursor = cursors + (<usize>(key >> columnBits) << 2);
    const next = load<u32>(cursor);
    store<u32>(cursor, next + 1);
    const at = <usize>(next - first) << 2;
    store<u32>(sortedKeys + at, key);
    store<u32>(sortedBits + at, load<u32>(bits + k));
  }
}

/** Makes columns of keys. Gives the number of keys that equal the one before. */
export function columnsOf(keys: usize, count: u32, columnBits: u32): u32 {
  if (count == 0) return 0;
  const mask: u32 = (1 << columnBits) - 1;
  const masks = i32x4.splat(mask);
  let before = i32x4.splat(~load<u32>(keys));
  let found = i32x4.splat(0);
  const end = keys + (<usize>count << 2);
  const whole = keys + (<usize>(count & ~3) << 2);
  let at = keys;
  for (; at < whole; at += 16) {
    const four = v128.load(at);
    found = i32x4.sub(found, i32x4.eq(four, v128.shuffle<i32>(before, four, 3, 4, 5, 6)));
    v128.store(at, v128.and(four, masks));
    before = four;
  }
  let repeated = i32x4.extract_lane(found, 0) + i32x4.extract_lane(found, 1) + i32x4.extract_lane(found, 2) + i32x4.extract_lane(found, 3);
  for (let last = i32x4.extract_lane(before, 3); at < end; at += 4) {
    const key = load<i32>(at);
    if (key == last) repeated++;
    store<u32>(at, key & mask);
    last = key;
  }
  return repeated;
}
