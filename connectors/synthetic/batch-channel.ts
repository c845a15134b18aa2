import type { RecordBatch, Schema } from 'apache-arrow';
import type { BatchStream } from '../../engine/stream.ts';

/**
 * Lets a producer push what a consumer pulls, one batch at a time: `put` resolves once the batch has been taken, so
 * nothing piles up between them.
 *
 * Contract: one producer, one consumer. When the consumer leaves early, `put` resolves to false from then on; after
 * `fail` the consumer gets the error in place of its next batch.
 */
export class BatchChannel implements BatchStream {
  readonly schema: Schema;
  #offer: { readonly batch: RecordBatch; readonly taken: (wanted: boolean) => void } | undefined;
  #wake: (() => void) | undefined;
  #ended = false;
  #left = false;
  #error: unknown;

  constructor(schema: Schema) {
    this.schema = schema;
  }

  put(batch: RecordBatch): Promise<boolean> {
    if (this.#left) return Promise.resolve(false);
    return new Promise((taken) => {
      this.#offer = { batch, taken };
      this.#wake?.();
    });
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#error ??= error;
    this.end();
  }

  /** The consumer is gone, whether it looked at the batches or not. */
  leave(): void {
    this.#left = true;
    this.#offer?.taken(false);
    this.#offer = undefined;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RecordBatch> {
    try {
      for (;;) {
        if (this.#error !== undefined) throw this.#error;
        if (this.#offer) {
          const { batch, taken } = this.#offer;
          this.#offer = undefined;
          taken(true);
          yield batch;
        } else if (this.#ended) {
          return;
        } else {
          await new Promise<void>((wake) => (this.#wake = wake));
          this.#wake = undefined;
        }
      }
    } finally {
      this.leave();
    }
  }
}
