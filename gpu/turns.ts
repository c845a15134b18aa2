/**
 * Requests to a GPU begin in the order in which they came. Each has its turn alone, since it may write what
 * the next one reads; one that has submitted its work and only waits for the outcome passes the turn on, so
 * that the GPU, which takes submissions in order, goes from one to the next without a pause.
 *
 */
export class Turns {
  #last: Promise<void> = Promise.resolve();
  /** Of those that have passed their turn on and not ended. */
  readonly #waiting = new Set<Promise<void>>();

  /** Runs `work` when its turn has come. The turn ends with the work, or when the work calls `pass`. */
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

  /** For one that has the turn: resolves when all that passed theirs on have ended. */
  async othersEnded(): Promise<void> {
    await Promise.all(this.#waiting);
  }
}
