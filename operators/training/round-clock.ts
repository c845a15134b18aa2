import type { StepResults } from '../../engine/run/run-steps.ts';

/**
 * Measures the time of each round, from the end of the work before it to its own end, so that the times of
 * consecutive rounds neither overlap nor leave gaps.
 */
export class RoundClock {
  /**
   * The time at which the latest steps ended: by the host's clock, in milliseconds, and by each device's own
   * clock.
   */
  #host = 0;
  #ends: StepResults['ends'] = new Map();

  /**
   * Seconds of a round whose steps have ended; the measure before it is not included. `sent`: time of
   * sending, in milliseconds of performance.now(). `follows`: true if the round was sent to a single device
   * that still ran earlier steps. Then the device's clock is used: the host may learn of both ends at the
   * same time.
   */
  round({ ends }: StepResults, sent: number, follows: boolean): number {
    const before = this.#ends;
    const from = Math.max(sent, this.#host);
    this.measured({ ends });
    const [end, ...others] = ends;
    const start = end && before.get(end[0]);
    const known = follows && others.length === 0 && start !== undefined && end[1] > start;
    return (known ? end[1] - start : this.#host - from) / 1000;
  }

  /** Records the end of other steps, such as a round's measure. */
  measured({ ends }: Pick<StepResults, 'ends'>): void {
    this.#host = performance.now();
    if (ends.size > 0) this.#ends = ends;
  }
}
