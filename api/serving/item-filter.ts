import type { KeyColumn } from '../../engine/keys/key-column.ts';

/** The items of a model that meet a condition, for any number of requests to that model. */
export class ItemFilter {
  /** @internal The ids of the model's items. */
  readonly keys: KeyColumn;
  /** @internal 1 for each item that meets the condition, by position. */
  readonly mask: Uint8Array;
  /** Number of items that meet it. */
  readonly count: number;

  constructor(keys: KeyColumn, mask: Uint8Array) {
    this.keys = keys;
    this.mask = mask;
    this.count = mask.reduce((sum, one) => sum + one, 0);
  }
}
