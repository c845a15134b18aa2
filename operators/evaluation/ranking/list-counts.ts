import { computeDevice } from '../../../engine/run/devices.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import { inFlight, placeItems, ranges, topLists, usersPerTask } from '../../serving/top-lists.ts';

/** Fills the places of a list that has too few items. */
export const NO_ITEM = 0xffff_ffff;

/** For each k, and for each item: the number of users whose first k items contain it. */
export type ListCounts = readonly Uint32Array[];

/**
 * Counts the items in the recommendation lists of a model, for the users with test items (`positives`). Ties
 * are broken by item number. So items keep their own order here; the faster search, which sorts items by norm
 * to bound their scores, cannot be used.
 */
export async function listCounts(
  model: FactorModel,
  positives: RatingBlock,
  exclude: RatingBlock | undefined,
  ks: readonly number[],
  ctx: ExecutionContext,
): Promise<ListCounts> {
  const items = keyCount(model.items);
  const counts = ks.map(() => new Uint32Array(items));
  const n = Math.min(items, Math.max(...ks));
  const { info } = computeDevice(ctx.executor);
  await Holdings.within(ctx, async (held) => {
    const placed = await placeItems(model, {}, info.place, held);
    const top = await topLists(placed, { model, n, exclude }, info, held);
    for await (const { from, to, items: found } of mapOrdered(
      ranges(positives.rows, usersPerTask(info, n)),
      inFlight(info),
      top,
    )) {
      for (let user = from; user < to; user++) {
        if (positives.offsets[user] === positives.offsets[user + 1]) continue;
        const at = (user - from) * n;
        for (let place = 0; place < n && found[at + place] !== NO_ITEM; place++)
          addTo(counts, ks, found[at + place], place);
      }
    }
  });
  return counts;
}

/**
 * Counts the items in the lists of users who all get the items in one order, each without the items that the
 * user has seen.
 */
export function listCountsByOrder(
  order: Uint32Array,
  positives: RatingBlock,
  exclude: RatingBlock | undefined,
  ks: readonly number[],
): ListCounts {
  const counts = ks.map(() => new Uint32Array(order.length));
  const most = Math.max(...ks);
  const seenBy = new Uint32Array(order.length);
  for (let user = 0; user < positives.rows; user++) {
    if (positives.offsets[user] === positives.offsets[user + 1]) continue;
    if (exclude)
      for (let k = exclude.offsets[user]; k < exclude.offsets[user + 1]; k++)
        seenBy[exclude.indices[k]] = user + 1;
    for (let at = 0, place = 0; at < order.length && place < most; at++)
      if (seenBy[order[at]] !== user + 1) addTo(counts, ks, order[at], place++);
  }
  return counts;
}

/** Counts an item at a position of a list. */
export function addTo(counts: ListCounts, ks: readonly number[], item: number, place: number): void {
  for (let i = 0; i < ks.length; i++) if (place < ks[i]) counts[i][item]++;
}

/** Share of all items that are in at least one list. */
export function coverage(counts: Uint32Array): number {
  return counts.reduce((found, count) => found + (count > 0 ? 1 : 0), 0) / counts.length;
}

/**
 * Mean of -log2 of an item's popularity over all entries of the lists (Vargas, Castells 2011). Popularity is
 * the share of users who have the item, (count + 1) / (users + 1), so that it is positive for an item without
 * users.
 */
export function novelty(counts: Uint32Array, itemCounts: Uint32Array, users: number): number {
  let [sum, entries] = [0, 0];
  counts.forEach((count, item) => {
    sum -= count * Math.log2((itemCounts[item] + 1) / (users + 1));
    entries += count;
  });
  return sum / entries;
}
