import { joinBytes } from '../files/stored-bytes.ts';

/**
 * Reads and writes lz4 frames (the LZ4 Frame format 1.6.4), as `lz4`, Feather and Spark write them. No
 * package reads them in pieces and verifies checksums: lz4js takes whole frames and verifies none, lz4-wasm
 * reads only independent blocks (in pyarrow's frames each block depends on the one before), lz4-napi is
 * native. docs/decisions/lz4.md has the figures.
 */
export const LZ4_MAGIC = 0x184d2204;

const BLOCK_BYTES: Readonly<Record<number, number>> = { 4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22 };
const STORED = 0x8000_0000;

/**
 * A decoder as a generator: it yields the number of bytes that it needs next and receives exactly these
 * bytes, and it yields unpacked bytes.
 */
type Steps = Generator<number | Uint8Array, void, Uint8Array>;

/**
 * Unpacks one frame after its magic number. Yields a number to request that many bytes, and yields unpacked
 * bytes in between. Throws an Error for damage. The unpacked bytes are views that are valid until the next
 * step.
 */
export function* unpackLz4(): Steps {
  const head = yield* takeHead();
  const whole = head.hasSum ? new XxHash32() : undefined;
  // Matches of dependent blocks refer to the 64 KiB before the block.
  const memory = new Uint8Array((head.independent ? 0 : LZ4_WINDOW) + head.blockBytes);
  let before = 0;
  let unpacked = 0;
  for (let size = word(yield* take(4)); size !== 0; size = word(yield* take(4))) {
    const block = yield* takeBlock(size & ~STORED, head);
    let end = before + block.length;
    if ((size & STORED) !== 0) memory.set(block, before);
    else end = unpackBlock(block, memory, before, head.blockBytes);
    whole?.update(memory.subarray(before, end));
    unpacked += end - before;
    yield memory.subarray(before, end);
    if (head.independent) continue;
    before = Math.min(end, LZ4_WINDOW);
    memory.copyWithin(0, end - before, end);
  }
  if (whole !== undefined && word(yield* take(4)) !== whole.digest())
    throw new Error('the checksum of the lz4 data does not match');
  if (head.size !== undefined && head.size !== unpacked)
    throw new Error(`an lz4 frame has ${unpacked} bytes, but its header says another number`);
}

interface FrameHead {
  /** True if no block refers to bytes of earlier blocks. */
  readonly independent: boolean;
  readonly blockSums: boolean;
  readonly hasSum: boolean;
  /** Most bytes of an unpacked block. */
  readonly blockBytes: number;
  /** Unpacked bytes of the frame, if its header has them. */
  readonly size: number | undefined;
}

function* takeHead(): Generator<number, FrameHead, Uint8Array> {
  const flags = yield* take(2);
  const [independent, blockSums, hasSize, hasSum, hasDictionary] = [0x20, 0x10, 0x08, 0x04, 0x01].map(
    (bit) => (flags[0] & bit) !== 0,
  );
  const blockBytes = BLOCK_BYTES[(flags[1] >> 4) & 7];
  if (flags[0] >> 6 !== 1 || blockBytes === undefined) throw new Error('the head of an lz4 frame is damaged');
  if (hasDictionary) throw new Error('the lz4 frame needs a dictionary of its own');
  const head = joinBytes([flags, hasSize ? yield* take(8) : new Uint8Array(0)]);
  const [sum] = yield* take(1);
  if (((new XxHash32().update(head).digest() >>> 8) & 255) !== sum)
    throw new Error('the head of an lz4 frame is damaged');
  const size = hasSize ? Number(new DataView(head.buffer).getBigUint64(2, true)) : undefined;
  return { independent, blockSums, hasSum, blockBytes, size };
}

function* takeBlock(
  length: number,
  { blockBytes, blockSums }: FrameHead,
): Generator<number, Uint8Array, Uint8Array> {
  if (length > blockBytes)
    throw new Error(`an lz4 block of ${length} bytes is larger than the frame's ${blockBytes}`);
  const block = yield* take(length);
  if (blockSums && word(yield* take(4)) !== new XxHash32().update(block).digest())
    throw new Error('the checksum of an lz4 block does not match');
  return block;
}

function* take(length: number): Generator<number, Uint8Array, Uint8Array> {
  return yield length;
}

function word(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
}

/** Unpacks all frames in memory. Throws an Error for damage, and for more than `most` bytes. */
export function unpackLz4Bytes(bytes: Uint8Array, most: number): Uint8Array {
  const parts: Uint8Array[] = [];
  let [p, total] = [0, 0];
  const next = (length: number) => {
    if (p + length > bytes.length) throw new Error('the lz4 data are cut off');
    return bytes.subarray(p, (p += length));
  };
  while (p < bytes.length) {
    if (word(next(4)) !== LZ4_MAGIC) throw new Error('these are not lz4 data');
    const steps = unpackLz4();
    for (let step = steps.next(new Uint8Array(0)); !step.done;) {
      if (typeof step.value === 'number') {
        step = steps.next(next(step.value));
        continue;
      }
      total += step.value.length;
      if (total > most) throw new Error(`it unpacks to more than ${most} bytes`);
      parts.push(step.value.slice());
      step = steps.next(new Uint8Array(0));
    }
  }
  return joinBytes(parts);
}

/** Writes a frame in pieces: independent blocks of 4 MiB, and a checksum of all bytes. */
export class Lz4Packer {
  readonly #sum = new XxHash32();

  begin(): Uint8Array {
    const bytes = Buffer.alloc(7);
    bytes.writeUInt32LE(LZ4_MAGIC);
    bytes.set([0x64, 0x70], 4);
    bytes[6] = (new XxHash32().update(bytes.subarray(4, 6)).digest() >>> 8) & 255;
    return bytes;
  }

  pack(bytes: Uint8Array): Uint8Array {
    this.#sum.update(bytes);
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES[7]) {
      const block = bytes.subarray(at, at + BLOCK_BYTES[7]);
      const packed = packBlock(block);
      parts.push(
        uint32(packed === undefined ? (block.length | STORED) >>> 0 : packed.length),
        packed ?? block,
      );
    }
    return joinBytes(parts);
  }

  end(): Uint8Array {
    return joinBytes([uint32(0), uint32(this.#sum.digest())]);
  }
}

/** Packs bytes in memory as one frame. */
export function packLz4Bytes(bytes: Uint8Array): Uint8Array {
  const packer = new Lz4Packer();
  return joinBytes([packer.begin(), packer.pack(bytes), packer.end()]);
}

function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/**
 * Packs and unpacks single lz4 blocks. A match (a reference to earlier bytes) may refer to bytes before the
 * block; output never exceeds the given room. lz4-wasm unpacks five times as fast, but cannot refer to bytes
 * before the block; hyparquet-compressors checks no length (docs/decisions/lz4.md).
 */

/** Largest distance from a match back to its source. */
const LZ4_WINDOW = 1 << 16;

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
function packBlock(bytes: Uint8Array): Uint8Array | undefined {
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

const P1 = 0x9e3779b1;
const P2 = 0x85ebca77;
const P3 = 0xc2b2ae3d;
const P4 = 0x27d4eb2f;
const P5 = 0x165667b1;

/**
 * 32-bit xxHash with seed 0, updated in pieces: the checksum of lz4 frames. It runs at 900 MB/s, a tenth of
 * the time of unpacking. xxhash-wasm and hash-wasm are three times as fast, but start asynchronously, and
 * Arrow's codecs are synchronous (docs/decisions/lz4.md).
 */
export class XxHash32 {
  readonly #lanes = Int32Array.of(P1 + P2, P2, 0, -P1);
  readonly #rest = new Uint8Array(16);
  #kept = 0;
  #length = 0;

  update(bytes: Uint8Array): this {
    this.#length += bytes.length;
    let at = 0;
    if (this.#kept > 0) {
      at = Math.min(16 - this.#kept, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#kept);
      this.#kept += at;
      if (this.#kept < 16) return this;
      this.#stripes(this.#rest, 0, 16);
    }
    const whole = at + ((bytes.length - at) & ~15);
    this.#stripes(bytes, at, whole);
    this.#rest.set(bytes.subarray(whole));
    this.#kept = bytes.length - whole;
    return this;
  }

  /** The hash of all bytes so far, from 0 to 2^32 - 1. */
  digest(): number {
    const [a, b, c, d] = this.#lanes;
    let hash = this.#length < 16 ? P5 : rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    hash = (hash + this.#length) | 0;
    let at = 0;
    for (; at + 4 <= this.#kept; at += 4)
      hash = Math.imul(rotate(hash + Math.imul(word32(this.#rest, at), P3), 17), P4);
    for (; at < this.#kept; at++) hash = Math.imul(rotate(hash + Math.imul(this.#rest[at], P5), 11), P1);
    hash = Math.imul(hash ^ (hash >>> 15), P2);
    hash = Math.imul(hash ^ (hash >>> 13), P3);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  #stripes(bytes: Uint8Array, from: number, to: number): void {
    let [a, b, c, d] = this.#lanes;
    for (let at = from; at < to; at += 16) {
      a = Math.imul(rotate(a + Math.imul(word32(bytes, at), P2), 13), P1);
      b = Math.imul(rotate(b + Math.imul(word32(bytes, at + 4), P2), 13), P1);
      c = Math.imul(rotate(c + Math.imul(word32(bytes, at + 8), P2), 13), P1);
      d = Math.imul(rotate(d + Math.imul(word32(bytes, at + 12), P2), 13), P1);
    }
    this.#lanes.set([a, b, c, d]);
  }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function word32(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}
