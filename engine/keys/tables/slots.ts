import { finalize } from '../../random.ts';

/**
 * The slots of an open-addressing table: number + 1 of the key in each slot, 0 for an empty one. Twice as
 * many slots as keys at least, a power of two, so a probe ends after one or two steps.
 *
 */
export class Slots {
  table = new Int32Array(64);
  mask = 63;

  /** True when `keys` keys need more slots; the owner then calls `reset` and adds its keys again. */
  isFull(keys: number): boolean {
    return 2 * keys > this.mask;
  }

  reset(keys: number): void {
    let size = 64;
    while (size < 4 * keys) size *= 2;
    this.table = new Int32Array(size);
    this.mask = size - 1;
  }
}

/** Spreads 32 bits over all bits, as a signed number. */
export function spread(bits: number): number {
  return finalize(bits) | 0;
}
