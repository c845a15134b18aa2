import type { BatchStream } from '../../../engine/stream/stream.ts';

/**
 * What was made of the rows of a held side, for the next task of the thread that holds the same rows, unless
 * memory was collected in between.
 */
export class HeldOnce<Held extends object> {
  readonly #made = new Map<string, WeakRef<Held>>();

  /** What `make` makes of the rows; `use`: the keys and columns that it takes. */
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
