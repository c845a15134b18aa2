/** A copy costs at most this part of a run's time. */
const SHARE = 0.05;

/** Seconds between two copies at least: what a lost device may cost. */
const LEAST_SECONDS = 2;

/**
 * The last factors of a run that were copied to the host, so that a device that is lost does not take the whole run along.
 * Copies are made at the ends of iterations, the less often the longer they take.
 */
export class HostCopy<Factors> {
  readonly #leastSeconds: number;
  #copy: { readonly iteration: number; readonly factors: Factors } | undefined;
  #since = performance.now();
  #wait: number;

  constructor(leastSeconds = LEAST_SECONDS) {
    this.#leastSeconds = leastSeconds;
    this.#wait = leastSeconds;
  }

  get last(): { readonly iteration: number; readonly factors: Factors } | undefined {
    return this.#copy;
  }

  /** Copies the factors of a finished iteration, if it is time to. */
  async offer(iteration: number, fetch: () => Promise<Factors>): Promise<void> {
    const start = performance.now();
    if (iteration === this.#copy?.iteration || start - this.#since < 1000 * this.#wait) return;
    this.#copy = { iteration, factors: await fetch() };
    this.#since = performance.now();
    this.#wait = Math.max(this.#leastSeconds, (this.#since - start) / 1000 / SHARE);
  }
}
