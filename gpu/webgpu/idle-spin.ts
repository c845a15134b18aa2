/**
 * Gives the GPU dummy work while the host works. An idle card lowers its clock to a fifth and takes tenths of
 * a second to raise it again, which would slow the first iterations.
 */
export class IdleSpin {
  /** Submits some milliseconds of work (on a large GPU) and waits for its end. */
  readonly #spin: () => Promise<void>;
  /** Number of pending works of the host. */
  #awaited = 0;
  #spinning: Promise<void> | undefined;

  constructor(spin: () => Promise<void>) {
    this.#spin = spin;
  }

  /** Returns `work`, and keeps the GPU busy until it ends. The caller does not wait for the dummy work. */
  during<Result>(work: Promise<Result>): Promise<Result> {
    this.#awaited++;
    const ended = () => void this.#awaited--;
    work.then(ended, ended);
    this.#spinning ??= this.#spinWhileAwaited();
    return work;
  }

  /** Resolves when no dummy work is running. */
  async ended(): Promise<void> {
    await this.#spinning;
  }

  async #spinWhileAwaited(): Promise<void> {
    try {
      await new Promise((resolve) => setTimeout(resolve, 5));
      while (this.#awaited > 0) await this.#spin();
    } catch {
      // The task that uses the device reports its loss.
    } finally {
      this.#spinning = undefined;
    }
  }
}
