import { HttpError } from './http-error.ts';

/**
 * The time limit of one request. Its signal fires when the time is over, the work has failed or the client
 * has gone.
 */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #over: Promise<never>;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(milliseconds: number) {
    this.#over = new Promise((_, reject) => {
      this.#timer = setTimeout(() => {
        reject(new HttpError('TIMEOUT', `the answer took more than ${milliseconds / 1000} seconds`));
        this.#controller.abort();
      }, milliseconds);
    });
    this.#over.catch(() => {});
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * The result of work, or HttpError TIMEOUT if it takes too long. A failure cancels parts that still run.
   */
  async within<T>(work: Promise<T>): Promise<T> {
    try {
      return await Promise.race([work, this.#over]);
    } catch (error) {
      this.#controller.abort();
      throw error;
    } finally {
      this.#ended = true;
      clearTimeout(this.#timer);
    }
  }

  /** Cancels the work, since the client has closed its connection. */
  abandon(): void {
    if (this.#ended) return;
    clearTimeout(this.#timer);
    this.#controller.abort();
  }
}
