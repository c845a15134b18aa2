/**
 * Counter-based random numbers: pure functions of (key, counter). Any thread can draw any number of a
 * sequence without drawing those before it, and a run gives the same bits with any number of threads.
 *
 * A key is 64 bits as two u32 halves. The mixing step is MurmurHash3's 32-bit finalizer (a bijection of u32
 * in which every input bit flips every output bit with probability near 1/2). The counter is mixed before the
 * key's halves, so two keys that agree on one draw by chance still differ on the next.
 */

const GOLDEN = 0x9e3779b9;

/** MurmurHash3's fmix32: u32 -> u32, one to one. */
export function finalize(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Mixes 32 bits; returns a signed number. */
export function spread(bits: number): number {
  return finalize(bits) | 0;
}

/** One u32 from two; for a fixed `a` (or `b`) it is one to one in the other. */
export function mix32(a: number, b: number): number {
  return finalize(finalize((a + GOLDEN) | 0) ^ b);
}

/** The u32 number `counter` (a u32) of the sequence with the given 64-bit key. */
export function randomU32(seedLow: number, seedHigh: number, counter: number): number {
  return finalize((mix32(counter, seedLow) + seedHigh) | 0);
}

/** A u32 as a number in the open interval (0, 1): the middle of its 2^-32 wide cell. */
export function uniform(u32: number): number {
  return (u32 + 0.5) * 2 ** -32;
}

/**
 * One standard normal number from two u32 (Box-Muller): sqrt(-2 ln u) cos 2πv. The largest |z| is 6.8, since
 * u has 32 bits.
 */
export function gaussian(u1: number, u2: number): number {
  return Math.sqrt(-2 * Math.log(uniform(u1))) * Math.cos(2 * Math.PI * uniform(u2));
}

/**
 * The sequence of a 64-bit key. Stateless: every method is a function of the counter (an integer in 0 .. 2^32
 * - 1).
 */
export class CounterRandom {
  readonly low: number;
  readonly high: number;

  constructor(low: number, high = 0) {
    this.low = low >>> 0;
    this.high = high >>> 0;
  }

  /** An independent sequence for a user, a column or a purpose. */
  derive(stream: number): CounterRandom {
    return new CounterRandom(mix32(this.low, stream), mix32(mix32(this.high, this.low), ~stream));
  }

  u32(counter: number): number {
    return randomU32(this.low, this.high, counter);
  }

  /** A number in (0, 1). */
  uniform(counter: number): number {
    return uniform(this.u32(counter));
  }

  /** An integer in 0 .. bound - 1, bound <= 2^32; the bias is below bound / 2^32. */
  below(counter: number, bound: number): number {
    return Math.floor(uniform(this.u32(counter)) * bound);
  }

  /** Standard normal; counters below 2^31 (each uses the u32 at 2c and 2c + 1). */
  gaussian(counter: number): number {
    return gaussian(this.u32(counter * 2), this.u32(counter * 2 + 1));
  }
}

/** 0 .. count - 1 in an order drawn from the sequence (Fisher-Yates). */
export function randomOrder(count: number, random: CounterRandom): Uint32Array {
  // A loop: Array.from takes several times as long as the swaps.
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  for (let i = count - 1; i > 0; i--) {
    const j = random.below(i, i + 1);
    const moved = order[i];
    order[i] = order[j];
    order[j] = moved;
  }
  return order;
}
