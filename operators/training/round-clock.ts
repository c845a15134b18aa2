import type { StepResults } from '../../engine/run/run-steps.ts';

/**
 * Times rounds from one completion to the next, so that no moment counts twice and none is lost between two
 * rounds that were sent together.
 */
export class RoundClock {
  /** When the latest steps ended, in milliseconds of the host's clock, and of the clocks of the devices. */
  #host = 0;
  #ends: StepResults['ends'] = new Map();

  /**
   * Seconds of a round whose steps have ended, without the measure before it. `sent`: when it was sent, in
   * milliseconds of performance.now(). `follows`: it was sent to one device before the steps ahead of it there
   * had ended; the device's own clock then has the time between their ends, while the host may learn of both
   * ends at once.
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

  /** Steps such as the measure of a round have ended. */
  measured({ ends }: Pick<StepResults, 'ends'>): void {
    this.#host = performance.now();
    if (ends.size > 0) this.#ends = ends;
  }
}
