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

/** All items by descending score, ties by position. */
export function orderOf(scores: ArrayLike<number>): Uint32Array {
  return Uint32Array.from({ length: scores.length }, (_, item) => item).sort(
    (left, right) => scores[right] - scores[left] || left - right,
  );
}

/**
 * Ranks of the test items (`positives`) if every user gets the items in the same order, without the items
 * that the user has seen (`exclude`). A rank is the item's rank in `order` minus the number of the user's
 * seen items before it. (For a model, rankPositives computes the same.)
 */
export async function placesByOrder(
  order: Uint32Array,
  positives: RatingBlock,
  exclude: RatingBlock | undefined,
  signal: AbortSignal,
): Promise<Uint32Array> {
  const placeOf = new Uint32Array(order.length);
  order.forEach((item, place) => (placeOf[item] = place));
  const places = Uint32Array.from(positives.indices, (item) => placeOf[item]);
  if (exclude === undefined) return places;
  let sorted = new Uint32Array(16);
  let before = new Uint32Array(17);
  for (let user = 0; user < positives.rows; user++) {
    const [start, end] = [positives.offsets[user], positives.offsets[user + 1]];
    if (user % USERS_AT_ONCE === 0) await turn(signal);
    if (start === end) continue;
    const own = end - start;
    if (own > sorted.length) [sorted, before] = [new Uint32Array(2 * own), new Uint32Array(2 * own + 1)];
    const list = sorted.subarray(0, own);
    list.set(places.subarray(start, end));
    list.sort();
    before.fill(0, 0, own + 1);
    for (let k = exclude.offsets[user]; k < exclude.offsets[user + 1]; k++) {
      if (k > exclude.offsets[user] && exclude.indices[k] === exclude.indices[k - 1]) continue;
      before[lowerBound(list, placeOf[exclude.indices[k]])]++;
    }
    for (let j = 1; j < own; j++) before[j] += before[j - 1];
    for (let k = start; k < end; k++) places[k] -= before[lowerBound(list, places[k])];
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
