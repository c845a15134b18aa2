import { FactorFlowError, sessionClosed } from '../engine/errors.ts';
import { CANCEL_MILLISECONDS } from '../engine/waits.ts';

/** The running work of a session, which is cancelled when the session closes. */
export class SessionWork {
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #ended: Promise<void> | undefined;

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Throws UsageError after `close`. */
  requireOpen(): void {
    if (this.closed) throw sessionClosed();
  }

  /** A signal for one run, which fires with the caller's signal and when the session closes. */
  signalOf(signal: AbortSignal | undefined): AbortSignal {
    const { signal: closing } = this.#closing;
    return AbortSignal.any(signal === undefined ? [closing] : [signal, closing]);
  }

  /** Makes `close` wait for work. Work that `close` cancelled fails with the error of a closed session. */
  readonly follow = <Result>(work: Promise<Result>): Promise<Result> => {
    const named = work.catch((error: unknown) => {
      throw this.closed && !(error instanceof FactorFlowError) ? sessionClosed(error) : error;
    });
    const ended = named.then(
      () => void this.#running.delete(ended),
      () => void this.#running.delete(ended),
    );
    this.#running.add(ended);
    return named;
  };

  /** Cancels the work, and waits for its end for a limited time. */
  close(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    this.#closing.abort(sessionClosed());
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, CANCEL_MILLISECONDS);
    // Work that is still running may start more work before it notices the cancellation.
    const allEnded = async () => {
      while (this.#running.size > 0) await Promise.all(this.#running);
    };
    await Promise.race([allEnded(), late]);
    clearTimeout(timer);
  }
}
