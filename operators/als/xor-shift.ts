/** The seed of Scala's MurmurHash3 for arrays, the hash of "Array". */
const ARRAY_SEED = 0x3c07_4a61;

/**
 * Spark's random numbers: its XORShiftRandom, a xorshift generator of 64 bits (Marsaglia 2003) with a hashed
 * seed, and on it the Gaussian numbers of java.util.Random. The state is two words of 32 bits.
 */
export class XorShift {
  #low: number;
  #high: number;
  #second: number | undefined;

  constructor(seed: bigint) {
    const bytes = new DataView(new ArrayBuffer(8));
    bytes.setBigUint64(0, BigInt.asUintN(64, seed));
    this.#low = hashOf(bytes, ARRAY_SEED);
    this.#high = hashOf(bytes, this.#low);
  }

  /** The next signed int64. */
  nextInt64(): bigint {
    this.#step();
    const high = BigInt(this.#low) << 32n;
    this.#step();
    return BigInt.asIntN(64, high + BigInt(this.#low));
  }

  /** Writes the next Gaussian numbers to out[from .. to - 1], by the polar method, which makes two at a time. */
  gaussians(out: Float32Array, from: number, to: number): void {
    let at = from;
    if (this.#second !== undefined && at < to) out[at++] = this.#second;
    if (at > from) this.#second = undefined;
    // The steps are written out, with the state in local variables: as calls they take twice the time.
    let [low, high] = [this.#low, this.#high];
    while (at < to) {
      high ^= (high << 21) | (low >>> 11);
      low ^= low << 21;
      low ^= high >>> 3;
      high ^= (high << 4) | (low >>> 28);
      low ^= low << 4;
      let upper = low & 0x3ff_ffff;
      high ^= (high << 21) | (low >>> 11);
      low ^= low << 21;
      low ^= high >>> 3;
      high ^= (high << 4) | (low >>> 28);
      low ^= low << 4;
      const x = (upper * 0x800_0000 + (low & 0x7ff_ffff)) * 2 ** -52 - 1;
      high ^= (high << 21) | (low >>> 11);
      low ^= low << 21;
      low ^= high >>> 3;
      high ^= (high << 4) | (low >>> 28);
      low ^= low << 4;
      upper = low & 0x3ff_ffff;
      high ^= (high << 21) | (low >>> 11);
      low ^= low << 21;
      low ^= high >>> 3;
      high ^= (high << 4) | (low >>> 28);
      low ^= low << 4;
      const y = (upper * 0x800_0000 + (low & 0x7ff_ffff)) * 2 ** -52 - 1;
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const scale = Math.sqrt((-2 * Math.log(square)) / square);
      out[at++] = x * scale;
      if (at < to) out[at++] = y * scale;
      else this.#second = y * scale;
    }
    [this.#low, this.#high] = [low, high];
  }

  /** x ^= x << 21; x ^= x >>> 35; x ^= x << 4 */
  #step(): void {
    let [low, high] = [this.#low, this.#high];
    high ^= (high << 21) | (low >>> 11);
    low ^= low << 21;
    low ^= high >>> 3;
    this.#high = high ^ ((high << 4) | (low >>> 28));
    this.#low = low ^ (low << 4);
  }
}

/** MurmurHash3's 32 bits of eight bytes, read as little-endian words. */
function hashOf(bytes: DataView, seed: number): number {
  let hash = seed;
  for (const at of [0, 4]) {
    const word = Math.imul(bytes.getUint32(at, true), 0xcc9e_2d51);
    hash ^= Math.imul((word << 15) | (word >>> 17), 0x1b87_3593);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe654_6b64) | 0;
  }
  hash ^= 8;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return hash ^ (hash >>> 16);
}
