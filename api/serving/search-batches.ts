import { cancelledBy } from '../../engine/errors.ts';
import type { Found, SearchRequest } from '../../operators/serving/search.ts';

/** Most searches that one task runs; a longer batch would delay the requests that come next. */
const MOST_SEARCHES = 32;

interface Waiting {
  readonly index: string;
  readonly request: SearchRequest;
  readonly resolve: (found: Found) => void;
  readonly reject: (error: unknown) => void;
  cancelled: boolean;
}

/** Runs searches of one index and one mask as one task, in their order. */
export type RunBatch = (index: string, requests: readonly SearchRequest[]) => Promise<readonly Found[]>;

/**
 * Sends a search to a thread at once while one is free. Searches that arrive while all threads are busy wait,
 * and go together: a message to a thread costs about as much as a search.
 */
export class SearchBatches {
  readonly #run: RunBatch;
  readonly #threads: () => number;
  #waiting: Waiting[] = [];
  #running = 0;

  constructor(run: RunBatch, threads: () => number) {
    [this.#run, this.#threads] = [run, threads];
  }

  /** Rejects with CancelledError when the signal fires; a search that runs then is not stopped. */
  async search(index: string, request: SearchRequest, signal: AbortSignal | undefined): Promise<Found> {
    if (signal?.aborted) throw cancelledBy(signal);
    const { promise, resolve, reject } = Promise.withResolvers<Found>();
    const waiting: Waiting = { index, request, resolve, reject, cancelled: false };
    this.#waiting.push(waiting);
    this.#send();
    if (signal === undefined) return promise;
    const cancel = () => {
      waiting.cancelled = true;
      reject(cancelledBy(signal));
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  #send(): void {
    const threads = this.#threads();
    while (this.#running < threads && this.#waiting.length > 0) {
      const batch = this.#take(Math.min(MOST_SEARCHES, Math.ceil(this.#waiting.length / threads)));
      if (batch.length === 0) continue;
      this.#running++;
      void this.#answer(batch).finally(() => {
        this.#running--;
        this.#send();
      });
    }
  }

  /** Removes the first search, and up to `most` in all of the same index and mask. */
  #take(most: number): Waiting[] {
    const rest = this.#waiting.filter(({ cancelled }) => !cancelled);
    const batch: Waiting[] = [];
    this.#waiting = [];
    for (const one of rest) {
      const fits = batch.length === 0 || isTogether(batch[0], one);
      if (fits && batch.length < most) batch.push(one);
      else this.#waiting.push(one);
    }
    return batch;
  }

  async #answer(batch: readonly Waiting[]): Promise<void> {
    try {
      const found = await this.#run(
        batch[0].index,
        batch.map(({ request }) => request),
      );
      batch.forEach(({ resolve }, k) => resolve(found[k]));
    } catch (error) {
      // One request may be at fault, such as by lists that are too long; the others are answered.
      if (batch.length === 1) batch[0].reject(error);
      else for (const one of batch) await this.#answer([one]);
    }
  }
}

function isTogether(first: Waiting, other: Waiting): boolean {
  return first.index === other.index && first.request.mask === other.request.mask;
}
