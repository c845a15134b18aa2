import { spread } from '../../engine/random.ts';

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
  readonly #words = new Int32Array(4);

  constructor(seed: bigint) {
    const bytes = new DataView(new ArrayBuffer(8));
    bytes.setBigUint64(0, BigInt.asUintN(64, seed));
    this.#low = hashOf(bytes, ARRAY_SEED);
    this.#high = hashOf(bytes, this.#low);
  }

  /** The next signed int64. */
  nextInt64(): bigint {
    const [high, low] = this.#next(2);
    return BigInt.asIntN(64, (BigInt(high) << 32n) + BigInt(low));
  }

  /** Writes the next Gaussian numbers to out[from .. to - 1], by the polar method, which makes two at a time. */
  gaussians(out: Float32Array, from: number, to: number): void {
    let at = from;
    if (this.#second !== undefined && at < to) out[at++] = this.#second;
    if (at > from) this.#second = undefined;
    while (at < to) {
      const words = this.#next(4);
      const x = fractionOf(words[0], words[1]);
      const y = fractionOf(words[2], words[3]);
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const scale = Math.sqrt((-2 * Math.log(square)) / square);
      out[at++] = x * scale;
      if (at < to) out[at++] = y * scale;
      else this.#second = y * scale;
    }
  }

  /** The lower halves of the next states: x ^= x << 21; x ^= x >>> 35; x ^= x << 4. Valid until the next call. */
  #next(count: number): Int32Array {
    let [low, high] = [this.#low, this.#high];
    for (let at = 0; at < count; at++) {
      high ^= (high << 21) | (low >>> 11);
      low ^= low << 21;
      low ^= high >>> 3;
      high ^= (high << 4) | (low >>> 28);
      low ^= low << 4;
      this.#words[at] = low;
    }
    [this.#low, this.#high] = [low, high];
    return this.#words;
  }
}

/** A number from -1 up to 1, from 26 and 27 bits of two words. */
function fractionOf(upper: number, lower: number): number {
  return ((upper & 0x3ff_ffff) * 0x800_0000 + (lower & 0x7ff_ffff)) * 2 ** -52 - 1;
}

/** MurmurHash3's 32 bits of eight bytes, read as little-endian words. */
function hashOf(bytes: DataView, seed: number): number {
  let hash = seed;
  for (const at of [0, 4]) {
    const word = Math.imul(bytes.getUint32(at, true), 0xcc9e_2d51);
    hash ^= Math.imul((word << 15) | (word >>> 17), 0x1b87_3593);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe654_6b64) | 0;
  }
  return spread(hash ^ 8);
}
