import { gaussian, randomU32, uniform } from '../../engine/random.ts';

/** Purposes of random numbers. Each has its own stream, independent of draws for the others. */
export const purposes = {
  userOrder: 1,
  itemOrder: 2,
  userModel: 3,
  itemModel: 4,
  itemsOfUser: 5,
  split: 6,
  noise: 7,
  times: 8,
} as const;

export type Purpose = (typeof purposes)[keyof typeof purposes];

/** 2^32 divided by the golden ratio, which spreads the small purpose numbers over the key. */
const SPREAD = 0x9e37_79b9;

/**
 * The random numbers of one (seed, purpose, id): the n-th is a function of only these four. `aim` sets the id
 * and restarts the stream, so that a loop over users creates no objects.
 */
export class RandomStream {
  readonly #seedLow: number;
  readonly #seedHigh: number;
  #low = 0;
  #high = 0;
  #counter = 0;

  /** `seed`: an integer from 0 below 2^53. */
  constructor(seed: number, purpose: Purpose) {
    this.#seedLow = seed >>> 0;
    this.#seedHigh = (Math.floor(seed / 2 ** 32) ^ Math.imul(purpose, SPREAD)) >>> 0;
  }

  /** `id`: from 0 below 2^31. */
  aim(id: number): this {
    this.#low = randomU32(this.#seedLow, this.#seedHigh, 2 * id);
    this.#high = randomU32(this.#seedLow, this.#seedHigh, 2 * id + 1);
    this.#counter = 0;
    return this;
  }

  /** The next 32 random bits. */
  nextU32(): number {
    return randomU32(this.#low, this.#high, this.#counter++);
  }

  /** The next number, uniform in (0, 1). */
  nextUniform(): number {
    return uniform(this.nextU32());
  }

  /**
   * The stream's n-th standard Gaussian number, n below 2^31, independent of earlier draws. Not to be mixed
   * with the other kinds of draws.
   */
  gaussianAt(n: number): number {
    return gaussian(randomU32(this.#low, this.#high, 2 * n), randomU32(this.#low, this.#high, 2 * n + 1));
  }
}
