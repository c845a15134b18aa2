import { cancelledBy, type FactorFlowError, throwIfAborted } from './errors.ts';

/** Time that cancelled work has to end before a session that closes gives it up. */
export const CANCEL_MILLISECONDS = 10_000;

/** Time that a wait has for an end in order, once its run was cancelled. */
const GRACE_MILLISECONDS = 100;

/** Lets timers and messages of this thread have their turn, a cancel among them; for any runtime. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Gives up waits for others, such as a source of the caller's: they may never end. */
export class Patience implements Disposable {
  readonly #signal: AbortSignal;
  readonly #phase: string;
  #timer: NodeJS.Timeout | undefined;
  /** Each of the waits under way: one promise for all would hold the outcome of every wait until the end. */
  readonly #waiting = new Set<(reason: FactorFlowError) => void>();
  #gaveUp: FactorFlowError | undefined;

  constructor(signal: AbortSignal, phase: string) {
    [this.#signal, this.#phase] = [signal, phase];
    signal.addEventListener('abort', this.#onAbort);
  }

  /** The outcome of the wait; the error of `cancelledBy` when the signal has fired and the wait goes on. */
  async waitFor<T>(start: () => Promise<T>): Promise<T> {
    throwIfAborted(this.#signal, this.#phase);
    return this.#race(start());
  }

  /** Waits for the end, or until the signal has fired and it does not come. */
  async outlast(end: Promise<unknown> | undefined): Promise<void> {
    if (this.#signal.aborted && this.#timer === undefined) this.#onAbort();
    await this.#race(end).catch((error: unknown) => {
      if (error !== this.#gaveUp) throw error;
    });
  }

  async #race<T>(wait: T | Promise<T>): Promise<T> {
    if (this.#gaveUp !== undefined) throw this.#gaveUp;
    const { promise, reject } = Promise.withResolvers<never>();
    this.#waiting.add(reject);
    try {
      return await Promise.race([wait, promise]);
    } catch (error) {
      // Work of others that was cancelled, such as fetch, may end with the reason of the signal.
      throw this.#signal.aborted && error === this.#signal.reason ? this.#cancelled() : error;
    } finally {
      this.#waiting.delete(reject);
    }
  }

  #cancelled(): FactorFlowError {
    return cancelledBy(this.#signal, { phase: this.#phase });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  readonly #onAbort = (): void => {
    this.#timer = setTimeout(() => {
      const reason = this.#cancelled();
      this.#gaveUp = reason;
      for (const giveUp of this.#waiting) giveUp(reason);
    }, GRACE_MILLISECONDS);
  };
}

/** When each wait for another program began: a server, the writer of a pipe. */
const begun = new Map<object, number>();

/** Waits for another program, in view of `longestWait`. */
export async function waitForOther<T>(wait: Promise<T>): Promise<T> {
  const key = {};
  begun.set(key, performance.now());
  try {
    return await wait;
  } finally {
    begun.delete(key);
  }
}

/** Milliseconds since the oldest wait for another program began; 0 where there is none. */
export function longestWait(): number {
  const [first = performance.now()] = begun.values();
  return performance.now() - first;
}
