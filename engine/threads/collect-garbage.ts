/**
 * The one place that collects garbage by hand. Memory of a SharedArrayBuffer, and of a GPU's buffer, returns
 * to the system only once the small object for it was collected in every thread that had it. V8 does not
 * count shared memory, so it sees a few bytes and does not collect: 200 buffers of 32 MiB, one in use at a
 * time, take 6.4 GB of memory, and ordinary buffers 0.3 GB.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Released bytes that may wait for a collection by the threads of the CPU; with less memory, fewer. */
export const COLLECT_BYTES = 64 << 20;
/** Where more is in use, 1 / COLLECT_SHARE of it may wait: each collection stops a thread. */
export const COLLECT_SHARE = 2;
/** Most released bytes that wait, however much is in use. */
const MOST_WAITING = 4 * 2 ** 30;
/** The same for a thread whose event loop others wait for. */
const COLLECT_RARELY_BYTES = 256 << 20;

let collect:
  | ((options?: {
      readonly type: 'major';
      readonly execution: 'sync';
      readonly flavor: 'last-resort';
    }) => void)
  | undefined;

function collector(): NonNullable<typeof collect> {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as NonNullable<typeof collect>;
  }
  return collect;
}

/** Collects this thread's garbage now: a few milliseconds with the small heaps of workers. */
export function collectGarbage(): void {
  collector()();
}

/**
 * Keeps the space for new objects of this and all later threads at the size that it has: its growth, which
 * saves collections, would take tens of megabytes a thread, most of which a small memory budget has for data.
 * For the process as a whole, for good.
 */
export function keepHeapsSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  // Gives back what start-up took.
  collector()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/**
 * Counts the memory that its owner has released, and collects this thread's garbage when enough waits. Other
 * threads that had the memory collect theirs when `collection`, sent to them with a request, has grown: they
 * have a `Garbage` of their own, which follows it.
 */
export class Garbage {
  readonly #here: boolean;
  #limit: number;
  #waiting = 0;
  #collection = 0;
  #paused = false;

  /**
   * `limit`: bytes that may wait. `here`: false leaves the garbage of this thread alone, where requests may
   * not wait even for milliseconds.
   */
  constructor({
    limit = COLLECT_RARELY_BYTES,
    here = true,
  }: { readonly limit?: number; readonly here?: boolean } = {}) {
    this.#limit = limit;
    this.#here = here;
  }

  /** The number of collections. */
  get collection(): number {
    return this.#collection;
  }

  /** `bytes` of memory have no more use. */
  add(bytes: number): void {
    this.#waiting += bytes;
  }

  /** From now on at most `limit` bytes wait. */
  lower(limit: number): void {
    this.#limit = Math.min(this.#limit, limit);
  }

  /** Lets everything wait until `collectAll`. */
  pause(): void {
    this.#paused = true;
  }

  /** Collects if enough bytes wait; `inUse`: bytes that the owner holds, see COLLECT_SHARE. */
  collectIfDue(inUse = 0): void {
    if (this.#paused) return;
    const share = this.#isScarce ? 0 : Math.min(MOST_WAITING, inUse / COLLECT_SHARE);
    if (this.#waiting >= Math.max(this.#limit, share)) this.#collectNow();
  }

  /** Collects all that waits, and ends a pause. False where too little waits to be worth it. */
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
    collectGarbage();
  }

  /** True where memory is so short that each byte is worth its collection. */
  get #isScarce(): boolean {
    return this.#limit < COLLECT_BYTES;
  }

  #collectNow(): void {
    this.#waiting = 0;
    this.#collection++;
    if (this.#here) collectGarbage();
  }
}
