import { throwIfAborted } from '../../../engine/errors.ts';
import { nextTurn } from '../../../engine/waits.ts';
import type { RatingBlock } from '../../ratings/ratings.ts';

/** Number of users after which other work of this thread gets a turn. */
const USERS_AT_ONCE = 4096;

/**
 * An item's mean is computed as if it had this number of additional ratings equal to the mean of all ratings.
 */
const DAMPING = 25;

/** Facts about the items in a model's training pairs. */
export interface ItemFacts {
  /** Number of users of each item. */
  readonly counts: Uint32Array;
  /** Number of all users. */
  readonly users: number;
  /** Means damped by 25 ratings equal to the overall mean; absent if the pairs have no ratings. */
  readonly means?: Float64Array;
}

export function itemFacts(
  { indices, values, offsets, rows }: RatingBlock,
  items: number,
  hasRatings: boolean,
): ItemFacts {
  const counts = new Uint32Array(items);
  const sums = new Float64Array(items);
  let total = 0;
  for (let row = 0; row < rows; row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      counts[indices[k]]++;
      sums[indices[k]] += values[k];
      total += values[k];
    }
  }
  if (!hasRatings) return { counts, users: rows };
  const mean = indices.length === 0 ? 0 : total / indices.length;
  return {
    counts,
    users: rows,
    means: sums.map((sum, item) => (sum + DAMPING * mean) / (counts[item] + DAMPING)),
  };
}

/** An order of all items, the same for all users. */
interface ItemOrder {
  /** Items by descending score, ties by position. */
  readonly items: Uint32Array;
  /** For each item, the number of items with higher scores, and of items with its score. */
  readonly above: Uint32Array;
  readonly tied: Uint32Array;
}

export function orderOf(scores: ArrayLike<number>): ItemOrder {
  const items = Uint32Array.from({ length: scores.length }, (_, item) => item).sort(
    (left, right) => scores[right] - scores[left] || left - right,
  );
  const [above, tied] = [new Uint32Array(items.length), new Uint32Array(items.length)];
  for (let from = 0, to = 0; from < items.length; from = to) {
    while (to < items.length && scores[items[to]] === scores[items[from]]) to++;
    for (const item of items.subarray(from, to)) [above[item], tied[item]] = [from, to - from];
  }
  return { items, above, tied };
}

/**
 * Ranks and ties of the test items (`positives`) if every user gets the items in the same order, without the
 * items that the user has seen (`exclude`): these are subtracted from the numbers of higher and of equal
 * scores. (For a model, PositiveRanks computes the same.)
 */
export async function placesByOrder(
  { above, tied }: ItemOrder,
  positives: RatingBlock,
  exclude: RatingBlock | undefined,
  signal: AbortSignal,
): Promise<Uint32Array> {
  const places = new Uint32Array(2 * positives.ratings);
  positives.indices.forEach((item, k) => places.set([above[item], tied[item]], 2 * k));
  if (exclude === undefined) return places;
  // For the ranks of the user's positives, sorted: the number of seen items above each, as a running sum, and
  // with the same score.
  let sorted = new Uint32Array(16);
  let [before, same] = [new Uint32Array(17), new Uint32Array(17)];
  for (let user = 0; user < positives.rows; user++) {
    const [start, end] = [positives.offsets[user], positives.offsets[user + 1]];
    if (user % USERS_AT_ONCE === 0) await turn(signal);
    if (start === end) continue;
    const own = end - start;
    if (own > sorted.length)
      [sorted, before, same] = [own, own + 1, own + 1].map((length) => new Uint32Array(2 * length));
    const list = sorted.subarray(0, own);
    for (let k = 0; k < own; k++) list[k] = places[2 * (start + k)];
    list.sort();
    before.fill(0, 0, own + 1);
    same.fill(0, 0, own + 1);
    for (let k = exclude.offsets[user]; k < exclude.offsets[user + 1]; k++) {
      if (k > exclude.offsets[user] && exclude.indices[k] === exclude.indices[k - 1]) continue;
      const place = above[exclude.indices[k]];
      before[lowerBound(list, place + 1)]++;
      const at = lowerBound(list, place);
      if (list[at] === place) same[at]++;
    }
    for (let j = 1; j < own; j++) before[j] += before[j - 1];
    for (let k = start; k < end; k++) {
      const at = lowerBound(list, places[2 * k]);
      places[2 * k] -= before[at];
      places[2 * k + 1] -= same[at];
    }
  }
  return places;
}

async function turn(signal: AbortSignal): Promise<void> {
  await nextTurn();
  throwIfAborted(signal, 'evaluate');
}

/** Number of entries of an ascending list that are below a value. */
export function lowerBound(list: ArrayLike<number>, value: number, from = 0, to = list.length): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The number of users' lists of k items that contain each item. If a list ends within items of equal scores,
 * each of these items is in it with the same probability.
 */
interface ItemLists {
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
