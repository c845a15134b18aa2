import type { BatchStream } from '../../../engine/stream/stream.ts';

/**
 * Caches what was built from the build side's rows, for the thread's next task with the same rows. Garbage
 * collection may drop it.
 */
export class HeldOnce<Held extends object> {
  readonly #made = new Map<string, WeakRef<Held>>();

  /** The result of `make` for the rows, cached. `use`: the keys and columns that it reads. */
  async of(rows: BatchStream, use: readonly (readonly string[])[], make: () => Promise<Held>): Promise<Held> {
    if (rows.identity === undefined) return make();
    const key = JSON.stringify([rows.identity, ...use]);
    const known = this.#made.get(key)?.deref();
    if (known !== undefined) return known;
    const held = await make();
    for (const [other, made] of this.#made) if (made.deref() === undefined) this.#made.delete(other);
    this.#made.set(key, new WeakRef(held));
    return held;
  }
}
