/**
 * Packs and unpacks single lz4 blocks. A match (a reference to earlier bytes) may refer to bytes before the
 * block; output never exceeds the given room. lz4-wasm unpacks five times as fast, but cannot refer to bytes
 * before the block; hyparquet-compressors checks no length (docs/decisions/lz4.md).
 */

/** Largest distance from a match back to its source. */
export const LZ4_WINDOW = 1 << 16;

const HASH_BITS = 14;
/**
 * Rules of the format: a block ends with at least five literals, and no match starts in its last twelve
 * bytes.
 */
const LAST_LITERALS = 5;
const LAST_MATCH = 12;

/**
 * Unpacks an lz4 block into `target` from `at` on; matches may refer to bytes before `at`. Returns the
 * position after the last byte. Throws an Error for a block that is damaged or larger than the room.
 */
export function unpackBlock(block: Uint8Array, target: Uint8Array, at: number, room: number): number {
  const end = block.length;
  const most = at + room;
  let p = 0;
  const length = (nibble: number): number => {
    let total = nibble;
    if (nibble !== 15) return total;
    for (let byte = 255; byte === 255; total += byte) {
      if (p >= end) throw damaged();
      byte = block[p++];
    }
    return total;
  };
  while (p < end) {
    const token = block[p++];
    const literals = length(token >> 4);
    if (p + literals > end || at + literals > most) throw damaged();
    if (literals > 32) target.set(block.subarray(p, p + literals), at);
    else for (let i = 0; i < literals; i++) target[at + i] = block[p + i];
    p += literals;
    at += literals;
    if (p === end) return at;
    if (p + 2 > end) throw damaged();
    const distance = block[p] | (block[p + 1] << 8);
    p += 2;
    const match = length(token & 15) + 4;
    if (distance === 0 || distance > at || at + match > most) throw damaged();
    if (match > 32 && distance >= match) target.copyWithin(at, at - distance, at - distance + match);
    else for (let i = 0; i < match; i++) target[at + i] = target[at + i - distance];
    at += match;
  }
  throw damaged();
}

function damaged(): Error {
  return new Error('a block of lz4 is damaged');
}

/**
 * Packs bytes as one lz4 block: greedy, with a table of the last position of each hash of four bytes.
 * Undefined if the block would not be smaller.
 */
export function packBlock(bytes: Uint8Array): Uint8Array | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const packed = new Uint8Array(bytes.length);
  const last = new Int32Array(1 << HASH_BITS).fill(-LZ4_WINDOW);
  const limit = bytes.length - LAST_MATCH;
  let out = 0;
  let from = 0;
  const put = (literals: number, distance: number, match: number): boolean => {
    if (out + literals + literals / 255 + match / 255 + 8 > packed.length) return false;
    const token = out++;
    packed[token] = (Math.min(literals, 15) << 4) | Math.min(match, 15);
    out = putLength(packed, out, literals);
    packed.set(bytes.subarray(from, from + literals), out);
    out += literals;
    if (distance === 0) return true;
    packed[out++] = distance & 255;
    packed[out++] = distance >> 8;
    out = putLength(packed, out, match);
    return true;
  };
  for (let p = 0; p < limit;) {
    const four = view.getUint32(p, true);
    const slot = Math.imul(four, 0x9e3779b1) >>> (32 - HASH_BITS);
    const before = last[slot];
    last[slot] = p;
    if (p - before >= LZ4_WINDOW || view.getUint32(before, true) !== four) {
      // The longer no match was found, the larger the steps, so that bytes that do not repeat are passed
      // quickly.
      p += 1 + ((p - from) >> 6);
      continue;
    }
    let match = 4;
    const most = bytes.length - LAST_LITERALS - p;
    while (match < most && bytes[before + match] === bytes[p + match]) match++;
    if (!put(p - from, p - before, match - 4)) return undefined;
    p += match;
    from = p;
  }
  return put(bytes.length - from, 0, 0) && out < bytes.length ? packed.subarray(0, out) : undefined;
}

function putLength(packed: Uint8Array, at: number, length: number): number {
  if (length < 15) return at;
  let rest = length - 15;
  for (; rest >= 255; rest -= 255) packed[at++] = 255;
  packed[at++] = rest;
  return at;
}
