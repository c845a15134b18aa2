import { purposes, RandomStream } from './random-stream.ts';

/** Range of the ratings' times, in seconds since 1970: the years 2015 to 2024. */
const FIRST = 1_420_070_400;
const LAST = 1_735_689_599;

/**
 * Mean seconds between two ratings of a user in one session, and the share of ratings that start a new
 * session.
 */
const GAP = 40;
const SITTINGS = 0.1;

/**
 * The times of users' ratings, in seconds: a user starts at a random time and rates in sessions, days to
 * months apart. They ascend with a user's ratings.
 */
export class RatingTimes {
  readonly #random: RandomStream;
  readonly #wanted: boolean;
  #time = 0;
  #pause = 0;

  /** Without `wanted` no times are drawn: all are 0. */
  constructor(seed: number, wanted = false) {
    this.#wanted = wanted;
    this.#random = new RandomStream(seed, purposes.times);
  }

  /** Starts the times of a user with this number of ratings. */
  aim(user: number, ratings: number): void {
    if (!this.#wanted) return;
    this.#random.aim(user);
    this.#time = FIRST + this.#random.nextUniform() * (LAST - FIRST);
    // All sessions together fit into the remaining time.
    const sittings = Math.max(1, 2 * SITTINGS * ratings);
    this.#pause = (LAST - this.#time) / sittings;
  }

  next(): number {
    if (!this.#wanted) return 0;
    const time = Math.floor(this.#time);
    const gap = -GAP * Math.log(this.#random.nextUniform());
    const pause = this.#random.nextUniform() < SITTINGS ? this.#random.nextUniform() * this.#pause : 0;
    this.#time = Math.min(LAST, this.#time + gap + pause);
    return time;
  }
}
