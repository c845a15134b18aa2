/**
 * Runs of indices into a dictionary (Parquet's RLE / bit-packed hybrid):
 *
 *     run     head (varint), then    head even: head / 2 times the index in the next ceil(width / 8) bytes
 *                                    head odd: head / 2 groups of 8 indices of `width` bits, the least bits first
 *     state   Uint32[6]: at, end: the bytes not yet read; width < 32; left: indices of the run not yet given;
 *             packed: 1 for a packed run; value: the repeated index, or the number of indices of the packed run that were given
 *
 * A packed run's `at` stays at its first byte until all of it is given.
 *
 *
 */

const AT: usize = 0;
const END: usize = 4;
const WIDTH: usize = 8;
const LEFT: usize = 12;
const PACKED: usize = 16;
const VALUE: usize = 20;

/**
 * Largest number of groups of one run whose indices have no bits: their number says nothing about the page's
 * bytes.
 */
const MOST_EMPTY: u32 = 1 << 27;

/** Gives the next `n` values of 4 bytes; 0 where the page ends early or an index is not below `size`. */
export function readRuns32(state: usize, n: u32, dictionary: usize, size: u32, out: usize): u32 {
  return readRuns<u32>(state, n, dictionary, size, out);
}

/** The same with values of 8 bytes. */
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

/** Indices [from, from + n) of a packed run. Of those of at most 15 bits four lie in one word of 64. */
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
  // The sign is that of an index beyond the dictionary.
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

/** The 57 bits or more from a bit of the run on. */
@inline
function wordAt(run: usize, bit: u32): u64 {
  return load<u64>(run + <usize>(bit >> 3)) >> <u64>(bit & 7);
}

/** Stores the value of an index; the sign of the result is that of an index beyond `top`. */
@inline
function give<T>(index: u64, dictionary: usize, top: u32, out: usize): u32 {
  store<T>(out, load<T>(dictionary + <usize>index * sizeof<T>()));
  return top - <u32>index;
}
