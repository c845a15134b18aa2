/**
 * Requests to a GPU start in the order in which they arrive. Each has its turn alone, since it may write what
 * the next one reads. A request that has submitted its work and only waits for the outcome passes the turn
 * on: the GPU, which executes submissions in order, then works without a pause.
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

  /** For the request that has the turn: resolves when all that passed their turn on have ended. */
  async othersEnded(): Promise<void> {
    await Promise.all(this.#waiting);
  }
}
