import { sharedArray } from '../../engine/partition.ts';
import { blockOf, type BlockArrays, type TaskHandler } from '../handler.ts';

/**
 * Adds to `inCommon`, for each item, the number of users that it has in common with an item. Writes the items
 * with such users to `found`, in any order, and returns that part of it. Both arrays have a place for each
 * item.
 */
function countUsersInCommon(
  item: number,
  byUser: BlockArrays,
  byItem: BlockArrays,
  inCommon: Int32Array,
  found: Uint32Array,
): Uint32Array {
  let length = 0;
  for (let k = byItem.offsets[item]; k < byItem.offsets[item + 1]; k++) {
    const user = byItem.indices[k];
    for (let j = byUser.offsets[user]; j < byUser.offsets[user + 1]; j++) {
      const other = byUser.indices[j];
      if (inCommon[other]++ === 0) found[length++] = other;
    }
  }
  return found.subarray(0, length);
}

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

export const similarItems: TaskHandler<'similar-items'> = (scope) => {
  const { from, to, count, shrink } = scope.params;
  const [byUser, byItem] = [blockOf(scope, 'byUser'), blockOf(scope, 'byItem')];
  const items = sharedArray(Uint32Array, (to - from) * count);
  const values = sharedArray(Float32Array, (to - from) * count);
  const usersOf = (item: number) => byItem.offsets[item + 1] - byItem.offsets[item];
  const inCommon = new Int32Array(byItem.offsets.length - 1);
  const found = new Uint32Array(inCommon.length);
  const best = new BestItems(count);
  for (let item = from; item < to && !scope.cancelled(); item++) {
    const others = countUsersInCommon(item, byUser, byItem, inCommon, found).sort();
    best.clear();
    for (const other of others) {
      const users = inCommon[other];
      inCommon[other] = 0;
      if (other !== item) best.offer(other, users / (Math.sqrt(usersOf(item) * usersOf(other)) + shrink));
    }
    items.set(best.items, (item - from) * count);
    values.set(best.scores, (item - from) * count);
  }
  return {
    rows: to - from,
    partitions: { similar: { layout: 'similar-items', rows: to - from, columns: { items, values } } },
  };
};
