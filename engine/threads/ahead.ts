/** Work that is begun before its result is needed. Disposing of it ends it, and waits until it has ended. */
export class Ahead<Result> implements AsyncDisposable {
  /** Rejects as the work does. */
  readonly result: Promise<Result>;
  readonly #ending = new AbortController();

  constructor(signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>) {
    this.result = work(AbortSignal.any([signal, this.#ending.signal]));
    // Those who wait for it get the error; without one it is no unhandled rejection.
    this.result.catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.result.catch(() => undefined);
  }
}
