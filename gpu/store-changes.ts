import type { StoreChange } from './requests.ts';

/**
 * Puts, allocations and releases of partitions that the GPU's thread has not received yet. They are sent with
 * the next request, in order.
 */
export class StoreChanges {
  /**
   * Pending changes. The first element is change number `#sent`, counted since the start. An element is
   * undefined if a later change made it unnecessary.
   */
  readonly #changes: (StoreChange | undefined)[] = [];
  /** The number of the last pending change, by key of the partition. */
  readonly #lastByKey = new Map<string, number>();
  #sent = 0;
  /**
   * Changes before this number belong to requests that have been made, though the thread may not have taken
   * these requests yet.
   */
  #promised = 0;

  /**
   * Adds a change. It replaces the last pending change of the same partition, unless that one already belongs
   * to a request. So a partition that is put and released between two requests is never sent.
   */
  note(change: StoreChange): void {
    const key = keyOf(change);
    const earlier = this.#lastByKey.get(key);
    if (earlier !== undefined && earlier >= this.#promised) this.#changes[earlier - this.#sent] = undefined;
    this.#lastByKey.set(key, this.#sent + this.#changes.length);
    this.#changes.push(change);
  }

  /**
   * Assigns the pending changes to a request that is made now. Returns a function that returns the changes
   * to send, to be called when the thread takes the request. Requests are taken in order.
   */
  promise(): () => StoreChange[] {
    const until = this.#sent + this.#changes.length;
    this.#promised = until;
    return () => {
      const changes = this.#changes.splice(0, Math.max(0, until - this.#sent));
      for (const [i, change] of changes.entries()) {
        if (change !== undefined && this.#lastByKey.get(keyOf(change)) === this.#sent + i)
          this.#lastByKey.delete(keyOf(change));
      }
      this.#sent += changes.length;
      return changes.filter((change) => change !== undefined);
    };
  }
}

function keyOf(change: StoreChange): string {
  if ('put' in change) return change.put;
  if ('leave' in change) return change.leave;
  return 'allocate' in change ? change.allocate : change.release;
}
