import type { KeyColumn } from '../../engine/keys/key-column.ts';
import type { FactorModel } from './factor-model.ts';

/**
 * Pairs that must not be recommended, in memory. They are stored by the positions of users and items in the
 * model for which they were read, and used for any number of requests.
 */
export class Exclusions {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /**
   * Number of pairs that are excluded, and of pairs that were dropped since the model does not know their
   * user or item.
   */
  readonly pairs: number;
  readonly unknownPairs: number;
  readonly #offsets: Int32Array;
  readonly #items: Uint32Array;

  /** `offsets` and `indices`: items of each user, ascending, in compressed rows. */
  constructor(
    { users, items }: FactorModel,
    { offsets, indices }: { readonly offsets: Int32Array; readonly indices: Uint32Array },
    unknownPairs: number,
  ) {
    this.users = users;
    this.items = items;
    this.pairs = indices.length;
    this.unknownPairs = unknownPairs;
    this.#offsets = offsets;
    this.#items = indices;
  }

  /** All pairs in compressed rows by position: items of each user, ascending. Views. */
  rows(): { readonly offsets: Int32Array; readonly indices: Uint32Array } {
    return { offsets: this.#offsets, indices: this.#items };
  }

  /** Positions of a user's items, ascending. A view. */
  of(user: number): Uint32Array {
    return this.#items.subarray(this.#offsets[user], this.#offsets[user + 1]);
  }
}
