import { cancelledBy, type FactorFlowError, throwIfAborted } from './errors.ts';

/** Time for cancelled work to end before a closing session abandons it. */
export const CANCEL_MILLISECONDS = 10_000;

/** Time for a wait to end by itself after its run was cancelled. */
const GRACE_MILLISECONDS = 100;

/** Lets pending timers and messages of this thread run, among them a cancel. Works in any runtime. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** The outcome of work that others wait for, too; throws the error of `cancelledBy` once the signal fires. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal, phase: string): Promise<T> {
  throwIfAborted(signal, phase);
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = () => reject(cancelledBy(signal, { phase }));
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/**
 * Waits for code that may never respond, such as a caller's source: after a cancel, a wait is abandoned soon.
 */
export class Patience implements Disposable {
  readonly #signal: AbortSignal;
  readonly #phase: string;
  #timer: NodeJS.Timeout | undefined;
  /**
   * Running waits. Each has its own promise: one promise for all would keep the outcome of every wait until
   * the end.
   */
  readonly #waiting = new Set<(reason: FactorFlowError) => void>();
  #gaveUp: FactorFlowError | undefined;

  constructor(signal: AbortSignal, phase: string) {
    [this.#signal, this.#phase] = [signal, phase];
    signal.addEventListener('abort', this.#onAbort);
  }

  /**
   * Returns the outcome of the wait. Throws the error of `cancelledBy` if the signal fires and the wait does
   * not end soon after.
   */
  async waitFor<T>(start: () => Promise<T>): Promise<T> {
    throwIfAborted(this.#signal, this.#phase);
    return this.#race(start());
  }

  /** Waits for the end; after the signal has fired, only for a limited time. */
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
      // Cancelled work of other code, such as fetch, may throw the signal's reason.
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

/**
 * Closes a caller's iterator once the signal fires, after a call of `next` that is running. Disposing ends
 * this.
 */
export function closeAtAbort(
  iterator: { readonly return?: (value?: undefined) => unknown },
  signal: AbortSignal | undefined,
  closed: () => void,
): Disposable {
  const close = () => {
    closed();
    void (async () => iterator.return?.(undefined))().catch(() => undefined);
  };
  if (signal?.aborted) close();
  else signal?.addEventListener('abort', close, { once: true });
  return { [Symbol.dispose]: () => signal?.removeEventListener('abort', close) };
}

/** The start times of waits for another program: a server, the writer of a pipe. */
const begun = new Map<object, number>();

/** Waits for another program; `longestWait` reports the wait. */
export async function waitForOther<T>(wait: Promise<T>): Promise<T> {
  const key = {};
  begun.set(key, performance.now());
  try {
    return await wait;
  } finally {
    begun.delete(key);
  }
}

/** Milliseconds since the oldest running wait for another program started; 0 if there is none. */
export function longestWait(): number {
  const [first = performance.now()] = begun.values();
  return performance.now() - first;
}
