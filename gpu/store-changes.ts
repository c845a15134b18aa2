import type { StoreChange } from './requests.ts';

/**
 * Changes of a GPU's store that its thread does not know yet: they are sent with the next request, in order.
 */
export class StoreChanges {
  /**
   * The first element is number `#told` of all there ever were; undefined where a later change made one
   * pointless.
   */
  readonly #changes: (StoreChange | undefined)[] = [];
  /** By key of the partition, the number of the last change that the thread does not know. */
  readonly #untold = new Map<string, number>();
  #told = 0;
  /**
   * Changes before this number belong to requests that were made, though they may still wait for the thread.
   */
  #promised = 0;

  /** A partition that is released before any request used it is not sent. */
  note(change: StoreChange): void {
    const key = keyOf(change);
    const earlier = this.#untold.get(key);
    if (earlier !== undefined && earlier >= this.#promised) this.#changes[earlier - this.#told] = undefined;
    this.#untold.set(key, this.#told + this.#changes.length);
    this.#changes.push(change);
  }

  /**
   * For a request that is made now: gives what it has to tell when the thread takes it. Requests are taken in
   * order.
   */
  promise(): () => StoreChange[] {
    const until = this.#told + this.#changes.length;
    this.#promised = until;
    return () => {
      const changes = this.#changes.splice(0, Math.max(0, until - this.#told));
      for (const [i, change] of changes.entries()) {
        if (change !== undefined && this.#untold.get(keyOf(change)) === this.#told + i)
          this.#untold.delete(keyOf(change));
      }
      this.#told += changes.length;
      return changes.filter((change) => change !== undefined);
    };
  }
}

function keyOf(change: StoreChange): string {
  if ('put' in change) return change.put;
  if ('leave' in change) return change.leave;
  return 'allocate' in change ? change.allocate : change.release;
}
