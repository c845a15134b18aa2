import type { StepResults } from '../../engine/run/run-steps.ts';

/**
 * Times rounds from the end of one to the end of the next, so that consecutive rounds neither overlap nor
 * leave gaps.
 */
export class RoundClock {
  /** When the latest steps ended, in milliseconds by the host's clock, and by the devices' clocks. */
  #host = 0;
  #ends: StepResults['ends'] = new Map();

  /**
   * Seconds of a round whose steps have ended, without the measure before it. `sent`: when it was sent, in
   * milliseconds of performance.now(). `follows`: it was sent to one device before the earlier steps there
   * had ended. Then the device's own clock gives the time between both ends, which the host may receive at
   * the same time.
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
