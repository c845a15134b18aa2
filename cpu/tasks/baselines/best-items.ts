/** Fills the places of a list that has too few items. */
export const NO_ITEM = 0xffff_ffff;

/**
 * The items with the highest scores among those offered, best first, ties by item. Items are offered in
 * ascending order.
 */
export class BestItems {
  readonly items: Uint32Array;
  readonly scores: Float32Array;
  #length = 0;

  constructor(most: number) {
    this.items = new Uint32Array(most).fill(NO_ITEM);
    this.scores = new Float32Array(most);
  }

  /** Forgets all items. */
  clear(): void {
    this.items.fill(NO_ITEM);
    this.scores.fill(0);
    this.#length = 0;
  }

  offer(item: number, score: number): void {
    const { items, scores } = this;
    if (this.#length === items.length) {
      if (this.#length === 0 || score <= scores[this.#length - 1]) return;
    } else this.#length++;
    let [low, high] = [0, this.#length - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (scores[middle] >= score) low = middle + 1;
      else high = middle;
    }
    items.copyWithin(low + 1, low, this.#length - 1);
    scores.copyWithin(low + 1, low, this.#length - 1);
    items[low] = item;
    scores[low] = score;
  }
}
