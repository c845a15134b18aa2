/** Allocates whole 64-bit words, like Arrow's padded bitmaps. */
export function makeBits(length: number): Uint8Array {
  return new Uint8Array(Math.ceil(length / 64) * 8);
}

export function bitAt(bits: Uint8Array, at: number): boolean {
  return (bits[at >>> 3] & (1 << (at & 7))) !== 0;
}

/** Sets `length` bits, starting at bit `at`. */
export function setBits(bits: Uint8Array, at: number, length: number): void {
  let bit = at;
  const end = at + length;
  for (; bit < end && (bit & 7) !== 0; bit++) bits[bit >>> 3] |= 1 << (bit & 7);
  const bytes = (end - bit) >>> 3;
  bits.fill(0xff, bit >>> 3, (bit >>> 3) + bytes);
  for (bit += 8 * bytes; bit < end; bit++) bits[bit >>> 3] |= 1 << (bit & 7);
}

/** Copies `length` bits, starting at bit `from`, onto bits that are 0. */
export function copyBits(
  source: Uint8Array,
  from: number,
  target: { readonly bits: Uint8Array; readonly at: number },
  length: number,
): void {
  const { bits, at } = target;
  let done = 0;
  if (((from | at) & 7) === 0) {
    const bytes = length >>> 3;
    bits.set(source.subarray(from >>> 3, (from >>> 3) + bytes), at >>> 3);
    done = 8 * bytes;
  }
  for (; done < length; done++) {
    const [bit, own] = [from + done, at + done];
    bits[own >>> 3] |= ((source[bit >>> 3] >> (bit & 7)) & 1) << (own & 7);
  }
}

/** Copies the bits at `offset + positions[i]`; also returns the number of ones. */
export function takeBits(
  source: Uint8Array,
  offset: number,
  positions: Uint32Array,
): { readonly bits: Uint8Array; readonly ones: number } {
  const rows = positions.length;
  const bits = makeBits(rows);
  let ones = 0;
  for (let i = 0; i < rows; i++) {
    const at = offset + positions[i];
    const bit = (source[at >>> 3] >> (at & 7)) & 1;
    bits[i >>> 3] |= bit << (i & 7);
    ones += bit;
  }
  return { bits, ones };
}
