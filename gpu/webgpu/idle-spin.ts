/**
 * Gives the GPU something to compute while the host works. An idle card lowers its clock to a fifth and takes
 * tenths of a second to raise it again, which would slow the first iterations.
 */
export class IdleSpin {
  /** Submits some milliseconds of work, on a large GPU, and waits for its end. */
  readonly #spin: () => Promise<void>;
  /** Works of the host that have not ended. */
  #awaited = 0;
  #spinning: Promise<void> | undefined;

  constructor(spin: () => Promise<void>) {
    this.#spin = spin;
  }

  /** Returns `work`, and spins until it ends. Nothing waits for the spinning. */
  during<Result>(work: Promise<Result>): Promise<Result> {
    this.#awaited++;
    const ended = () => void this.#awaited--;
    work.then(ended, ended);
    this.#spinning ??= this.#spinWhileAwaited();
    return work;
  }

  /** Resolves when the GPU spins no more. */
  async ended(): Promise<void> {
    await this.#spinning;
  }

  async #spinWhileAwaited(): Promise<void> {
    try {
      await new Promise((resolve) => setTimeout(resolve, 5));
      while (this.#awaited > 0) await this.#spin();
    } catch {
      // A device that is lost fails the task that uses it.
    } finally {
      this.#spinning = undefined;
    }
  }
}
