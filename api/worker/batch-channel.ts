import type { RecordBatch } from 'apache-arrow';

interface Waiting {
  readonly batch: RecordBatch | undefined;
  readonly taken: () => void;
}

/**
 * Passes batches from requests to a stream that is read elsewhere. It holds one batch at a time, so that
 * requests wait for the reader.
 */
export class BatchChannel {
  #waiting: Waiting | undefined;
  #wake: (() => void) | undefined;
  #failed: { readonly error: unknown } | undefined;
  #reject: ((error: unknown) => void) | undefined;

  /** Resolves once the batch has been read. Throws the reader's error. */
  push(batch: RecordBatch): Promise<void> {
    return this.#offer(batch);
  }

  /** Ends the stream. */
  end(): Promise<void> {
    return this.#offer(undefined);
  }

  /** Ends both sides with an error. */
  fail(error: unknown): void {
    this.#failed ??= { error };
    this.#reject?.(error);
    this.#wake?.();
  }

  async *batches(): AsyncGenerator<RecordBatch> {
    for (;;) {
      if (this.#failed !== undefined) throw this.#failed.error;
      const next = this.#waiting;
      if (next === undefined) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      this.#waiting = undefined;
      next.taken();
      if (next.batch === undefined) return;
      yield next.batch;
    }
  }

  #offer(batch: RecordBatch | undefined): Promise<void> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed.error);
    return new Promise<void>((taken, reject) => {
      this.#reject = reject;
      this.#waiting = { batch, taken };
      this.#wake?.();
    });
  }
}
