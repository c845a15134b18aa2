/**
 * Memory of a SharedArrayBuffer, and of a GPU's buffer, returns to the system only once its small wrapper
 * object is collected in every thread that had it. Each thread of Node sets `collectGarbage` of
 * engine/threads/collect-garbage.ts. A page has no collector: the browser alone decides when it collects.
 */
let collect = (): void => {};

/** Sets the function that collects this thread's garbage now. */
export function setCollector(collector: () => void): void {
  collect = collector;
}

/** Released bytes that may wait for a collection by the threads of the CPU; fewer if memory is limited. */
export const COLLECT_BYTES = 64 << 20;
/** Most bytes that wait where memory is plenty. */
const MOST_COLLECT_BYTES = 1 << 30;
/** Share of the memory budget that may wait. */
const WAITING_SHARE = 1 / 64;

/**
 * Released bytes that may wait within a memory budget. Every thread collects garbage each time, so with many
 * threads frequent collections take as long as the tasks.
 */
export function collectBytes(budget: number): number {
  return Math.max(COLLECT_BYTES, Math.min(MOST_COLLECT_BYTES, Math.floor(budget * WAITING_SHARE)));
}

/**
 * If much memory is in use, up to 1 / COLLECT_SHARE of it may wait for a collection, which stops a thread.
 */
export const COLLECT_SHARE = 2;
/** Most released bytes that wait, regardless of the bytes in use. */
const MOST_WAITING = 4 * 2 ** 30;
/** Like COLLECT_BYTES, for a thread on whose event loop other threads wait. */
const COLLECT_RARELY_BYTES = 256 << 20;

/**
 * Counts released memory, and collects this thread's garbage once enough of it waits. Other threads that had
 * the same memory have their own `Garbage`, which follows this one: they collect when `collection`, sent to
 * them with a request, has increased.
 */
export class Garbage {
  readonly #here: boolean;
  #limit: number;
  #waiting = 0;
  #collection = 0;
  #paused = false;

  /**
   * - `limit`: number of released bytes that may wait for a collection.
   * - `here`: false if this thread must never collect, because its requests must not wait even for
   *   milliseconds.
   */
  constructor({
    limit = COLLECT_RARELY_BYTES,
    here = true,
  }: { readonly limit?: number; readonly here?: boolean } = {}) {
    this.#limit = limit;
    this.#here = here;
  }

  /** Number of collections so far. */
  get collection(): number {
    return this.#collection;
  }

  /** Records that `bytes` of memory are no longer used. */
  add(bytes: number): void {
    this.#waiting += bytes;
  }

  /** Lowers the limit to at most `limit` bytes. */
  lower(limit: number): void {
    this.#limit = Math.min(this.#limit, limit);
  }

  /** Stops collecting until `collectAll`. */
  pause(): void {
    this.#paused = true;
  }

  /** Collects if enough bytes wait; `inUse`: bytes that the owner holds, see COLLECT_SHARE. */
  collectIfDue(inUse = 0): void {
    if (this.#paused) return;
    const share = this.#isScarce ? 0 : Math.min(MOST_WAITING, inUse / COLLECT_SHARE);
    if (this.#waiting >= Math.max(this.#limit, share)) this.#collectNow();
  }

  /** Collects all waiting memory, and ends a pause. Returns false if too little waits. */
  collectAll(): boolean {
    this.#paused = false;
    if (this.#waiting < this.#limit && !this.#isScarce) return false;
    this.#collectNow();
    return true;
  }

  /** Collects this thread's garbage if the owner of the memory, in another thread, has done so. */
  follow(collection: number): void {
    if (collection === this.#collection) return;
    this.#collection = collection;
    collect();
  }

  /** True if memory is so scarce that every byte is worth a collection. */
  get #isScarce(): boolean {
    return this.#limit < COLLECT_BYTES;
  }

  #collectNow(): void {
    this.#waiting = 0;
    this.#collection++;
    if (this.#here) collect();
  }
}
