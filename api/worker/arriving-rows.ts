import type { RecordBatch } from 'apache-arrow';
import { type KeyColumn, keyCount, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import type { KeyLookup } from '../../engine/keys/key-lookup.ts';

/** Rows of factors with their ids. `Factors`: numbers alone, or also bits of float16. */
export interface FactorRows<Factors = Float32Array> {
  readonly ids: KeyColumn;
  readonly factors: Factors;
}

/** Counts the rows of one version of factors, which arrive in one or more frames, in any order. */
export class ArrivingRows {
  readonly version: number;
  readonly #lookup: KeyLookup;
  readonly #known: Uint8Array;
  #missing: number;

  /** `lookup`: the ids of all rows that are to arrive. */
  constructor(version: number, lookup: KeyLookup) {
    this.version = version;
    this.#lookup = lookup;
    this.#missing = keyCount(lookup.keys);
    this.#known = new Uint8Array(this.#missing);
  }

  /** Counts rows as arrived. Returns their positions in the lookup, UNKNOWN_KEY for ids that it does not have. */
  add(ids: KeyColumn): Uint32Array {
    const positions = this.#lookup.positionsOf(ids);
    for (const position of positions) {
      if (position === UNKNOWN_KEY) continue;
      this.#missing -= 1 - this.#known[position];
      this.#known[position] = 1;
    }
    return positions;
  }

  /** The number of rows that have not arrived. */
  get missing(): number {
    return this.#missing;
  }
}

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
