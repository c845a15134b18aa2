import type { RatingBlock } from '../../ratings/rating-block.ts';
import { type ItemOrder, orderOf } from './item-order.ts';

/**
 * The number of users' lists of k items that contain each item. If a list ends within items of equal scores,
 * each of these items is in it with the same probability.
 */
export interface ItemLists {
  /** Expected number of lists with the item. */
  readonly lists: Float64Array;
  /** Probability that no list has the item. */
  readonly unlisted: Float64Array;
}

/** For each k: see ItemLists. */
export type ListCounts = readonly ItemLists[];

export function noLists(items: number, ks: readonly number[]): ListCounts {
  return ks.map(() => ({ lists: new Float64Array(items), unlisted: new Float64Array(items).fill(1) }));
}

/**
 * Adds a user's items, best first: `length` of them, which are all, or go on after the largest k to the end
 * of the items with the score there.
 */
export function addList(
  counts: ListCounts,
  ks: readonly number[],
  items: ArrayLike<number>,
  isTied: (place: number, other: number) => boolean,
  length: number,
): void {
  for (let i = 0; i < ks.length; i++) {
    const { lists, unlisted } = counts[i];
    let [from, to] = [Math.min(ks[i], length), Math.min(ks[i], length)];
    if (to > 0 && to < length && isTied(to - 1, to)) {
      while (from > 0 && isTied(from - 1, to)) from--;
      while (to < length && isTied(from, to)) to++;
    }
    for (let place = 0; place < to; place++) {
      const chance = place < from ? 1 : (ks[i] - from) / (to - from);
      lists[items[place]] += chance;
      unlisted[items[place]] *= 1 - chance;
    }
  }
}

/** Adds the users' lists, in the order of the scores of their entries. */
export function addListed(
  counts: ListCounts,
  ks: readonly number[],
  lists: RatingBlock,
  scores: ArrayLike<number>,
): void {
  for (const { order, above } of rankedLists(scores, lists)) {
    const list = order.map((k) => lists.indices[k]);
    addList(counts, ks, list, (place, other) => above[place] === above[other], list.length);
  }
}

/**
 * For each user with a list: its entries by descending score, and for each of them the number of entries with
 * higher scores and of entries with its score. An entry without a score is last, and has no ties.
 */
export function* rankedLists(scores: ArrayLike<number>, { rows, offsets }: RatingBlock) {
  for (let user = 0; user < rows; user++) {
    const [start, length] = [offsets[user], offsets[user + 1] - offsets[user]];
    if (length === 0) continue;
    const own = Float64Array.from({ length }, (_, k) => {
      const score = scores[start + k];
      return Number.isNaN(score) ? Number.NEGATIVE_INFINITY : score;
    });
    const { items: order, above, tied } = orderOf(own);
    yield {
      user,
      order: order.map((k) => start + k),
      above: Uint32Array.from(order, (k) => above[k]),
      ties: Uint32Array.from(order, (k) => (own[k] > Number.NEGATIVE_INFINITY ? tied[k] : 0)),
    };
  }
}

/**
 * Counts the items in the lists of users who all get the items in one order, each without the items that the
 * user has seen.
 */
export function listCountsByOrder(
  { items, above }: ItemOrder,
  positives: RatingBlock,
  exclude: RatingBlock | undefined,
  ks: readonly number[],
): ListCounts {
  const counts = noLists(items.length, ks);
  const most = Math.max(...ks);
  const seenBy = new Uint32Array(items.length);
  const list = new Uint32Array(items.length);
  const isTied = (place: number, other: number) => above[list[place]] === above[list[other]];
  for (let user = 0; user < positives.rows; user++) {
    if (positives.offsets[user] === positives.offsets[user + 1]) continue;
    if (exclude)
      for (let k = exclude.offsets[user]; k < exclude.offsets[user + 1]; k++)
        seenBy[exclude.indices[k]] = user + 1;
    let length = 0;
    for (const item of items) {
      if (seenBy[item] === user + 1) continue;
      list[length] = item;
      if (length >= most && !isTied(most - 1, length)) break;
      length++;
    }
    addList(counts, ks, list, isTied, length);
  }
  return counts;
}

/** Expected share of all items that are in at least one list. */
export function coverage({ unlisted }: ItemLists): number {
  return unlisted.reduce((found, probability) => found + 1 - probability, 0) / unlisted.length;
}

/**
 * Mean of -log2 of an item's popularity over all entries of the lists (Vargas, Castells 2011). Popularity is
 * the share of users who have the item, (count + 1) / (users + 1), so that it is positive for an item without
 * users.
 */
export function novelty(lists: Float64Array, itemCounts: Uint32Array, users: number): number {
  let [sum, entries] = [0, 0];
  lists.forEach((count, item) => {
    sum -= count * Math.log2((itemCounts[item] + 1) / (users + 1));
    entries += count;
  });
  return sum / entries;
}
