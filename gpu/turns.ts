/**
 * Orders the requests to a GPU: they start in the order in which they arrive. At any time one request has the
 * turn, since it may write data that the next one reads. When it has submitted all its work and only waits
 * for results, it passes the turn on to the next request. The GPU executes submissions in order, and so has
 * no pause between two requests.
 */
export class Turns {
  #last: Promise<void> = Promise.resolve();
  /** Requests that have passed their turn on and not ended. */
  readonly #waiting = new Set<Promise<void>>();

  /** Runs `work` when its turn arrives. The turn ends with the work, or when the work calls `pass`. */
  async run<Result>(work: (pass: () => void) => Promise<Result>): Promise<Result> {
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    this.#last = turn.promise;
    await before;
    try {
      return await work(() => {
        this.#waiting.add(end.promise);
        turn.resolve();
      });
    } finally {
      this.#waiting.delete(end.promise);
      end.resolve();
      turn.resolve();
    }
  }

  /**
   * Called by the request that has the turn: resolves when all requests that passed their turn on have
   * ended.
   */
  async othersEnded(): Promise<void> {
    await Promise.all(this.#waiting);
  }
}
