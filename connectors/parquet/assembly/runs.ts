/**
 * Decodes runs of indices into a dictionary (Parquet's RLE / bit-packed hybrid):
 *
 *     run     head (varint), then    head even: head / 2 times the index in the next ceil(width / 8) bytes
 *                                    head odd: head / 2 groups of 8 indices of `width` bits, lowest bits first
 *     state   Uint32[6]: at, end: the unread bytes; width < 32; left: number of indices of the run not yet returned;
 *             packed: 1 for a packed run; value: the repeated index, or the number of indices already returned
 *             of a packed run
 *
 * `at` stays at the first byte of a packed run until all of its indices are returned.
 */

const AT: usize = 0;
const END: usize = 4;
const WIDTH: usize = 8;
const LEFT: usize = 12;
const PACKED: usize = 16;
const VALUE: usize = 20;

/**
 * Most groups of a run of indices with zero bits. Such a run takes no bytes, so the size of the page does not
 * limit it.
 */
const MOST_EMPTY: u32 = 1 << 27;

/**
 * Writes the next `n` values of 4 bytes. Returns 0 if the page ends early or an index is not below `size`.
 */
export function readRuns32(state: usize, n: u32, dictionary: usize, size: u32, out: usize): u32 {
  return readRuns<u32>(state, n, dictionary, size, out);
}

/** Writes the next `n` values of 8 bytes; results as in readRuns32. */
export function readRuns64(state: usize, n: u32, dictionary: usize, size: u32, out: usize): u32 {
  return readRuns<u64>(state, n, dictionary, size, out);
}

@inline
function readRuns<T>(state: usize, n: u32, dictionary: usize, size: u32, out: usize): u32 {
  let at = <usize>load<u32>(state + AT);
  const end = <usize>load<u32>(state + END);
  const width = load<u32>(state + WIDTH);
  let left = load<u32>(state + LEFT);
  let packed = load<u32>(state + PACKED);
  let value = load<u32>(state + VALUE);
  if (size > 0x7fffffff || width > 31) return 0;
  while (n > 0) {
    if (left == 0) {
      let head: u32 = 0;
      let shift: u32 = 0;
      let byte: u32;
      do {
        if (at >= end || shift > 28) return 0;
        byte = load<u8>(at++);
        head |= (byte & 127) << shift;
        shift += 7;
      } while (byte > 127);
      const count = head >> 1;
      packed = head & 1;
      if (packed) {
        if (<u64>count * width > <u64>(end - at) || count > MOST_EMPTY) return 0;
        left = count << 3;
        value = 0;
      } else {
        const bytes = (width + 7) >> 3;
        if (bytes > <u32>(end - at)) return 0;
        left = count;
        value = 0;
        for (let i: u32 = 0; i < bytes; i++) value |= load<u8>(at + i) << (i << 3);
        at += bytes;
      }
      continue;
    }
    const some = min(left, n);
    if (packed) {
      if (!unpack<T>(at, width, value, some, dictionary, size, out)) return 0;
      value += some;
      if (some == left) at += <usize>((value >> 3) * width);
    } else {
      if (value >= size) return 0;
      const repeated = load<T>(dictionary + <usize>value * sizeof<T>());
      for (let i: u32 = 0; i < some; i++) store<T>(out + <usize>i * sizeof<T>(), repeated);
    }
    out += <usize>some * sizeof<T>();
    left -= some;
    n -= some;
  }
  store<u32>(state + AT, <u32>at);
  store<u32>(state + LEFT, left);
  store<u32>(state + PACKED, packed);
  store<u32>(state + VALUE, value);
  return 1;
}

/**
 * Writes the values of indices [from, from + n) of a packed run. A 64-bit word holds at least four indices of
 * up to 15 bits, so eight are decoded from two words.
 */
@inline
function unpack<T>(
  run: usize,
  width: u32,
  from: u32,
  n: u32,
  dictionary: usize,
  size: u32,
  out: usize,
): bool {
  const mask: u64 = ((<u64>1) << width) - 1;
  const top = size - 1;
  // The sign bit of `beyond` is set when an index is beyond the dictionary; it is checked once after the
  // loop.
  let beyond: u32 = 0;
  let i = from;
  const end = from + n;
  for (; i < end && (i & 7) != 0; i++, out += sizeof<T>())
    beyond |= give<T>(wordAt(run, i * width) & mask, dictionary, top, out);
  if (width <= 15) {
    const bits = <u64>width;
    const second = <usize>(width >> 1);
    const shift = <u64>((width & 1) << 2);
    for (
      let group = run + <usize>((i >> 3) * width);
      i + 8 <= end;
      i += 8, out += 8 * sizeof<T>(), group += width
    ) {
      const low = load<u64>(group);
      const high = load<u64>(group + second) >> shift;
      beyond |= give<T>(low & mask, dictionary, top, out);
      beyond |= give<T>((low >> bits) & mask, dictionary, top, out + sizeof<T>());
      beyond |= give<T>((low >> (2 * bits)) & mask, dictionary, top, out + 2 * sizeof<T>());
      beyond |= give<T>((low >> (3 * bits)) & mask, dictionary, top, out + 3 * sizeof<T>());
      beyond |= give<T>(high & mask, dictionary, top, out + 4 * sizeof<T>());
      beyond |= give<T>((high >> bits) & mask, dictionary, top, out + 5 * sizeof<T>());
      beyond |= give<T>((high >> (2 * bits)) & mask, dictionary, top, out + 6 * sizeof<T>());
      beyond |= give<T>((high >> (3 * bits)) & mask, dictionary, top, out + 7 * sizeof<T>());
    }
  }
  for (; i < end; i++, out += sizeof<T>())
    beyond |= give<T>(wordAt(run, i * width) & mask, dictionary, top, out);
  return beyond >> 31 == 0;
}

/** At least 57 bits, from bit `bit` of the run. */
@inline
function wordAt(run: usize, bit: u32): u64 {
  return load<u64>(run + <usize>(bit >> 3)) >> <u64>(bit & 7);
}

/** Stores the value of an index. The result's sign bit is set if the index is above `top`. */
@inline
function give<T>(index: u64, dictionary: usize, top: u32, out: usize): u32 {
  store<T>(out, load<T>(dictionary + <usize>index * sizeof<T>()));
  return top - <u32>index;
}
