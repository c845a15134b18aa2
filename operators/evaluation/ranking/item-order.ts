import { nextTurn } from '../../../engine/waits.ts';
import { throwIfAborted } from '../../../engine/errors.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';

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
export interface ItemOrder {
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
