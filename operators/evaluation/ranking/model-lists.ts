import { keyCount } from '../../../engine/keys/key-column.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { dataSetName } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../ratings/rating-block.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import { inFlight, NO_ITEM, placeItems, ranges, topLists, usersPerTask } from '../../serving/top-lists.ts';
import { addList, addListed, type ListCounts, noLists } from './list-counts.ts';
import { listedScores } from './listed-scores.ts';
import { holds } from './ranked-test.ts';

/** Pairs of users and items that are scored together, for lists that end within equal scores. */
const TIED_PAIRS = 1 << 22;

/**
 * Counts the items in the recommendation lists of a model, for the users with test items (`positives`). The
 * search returns one item more than the longest list, so that a list that ends within equal scores is
 * noticed. All items of such a user are then scored.
 */
export async function listCounts(
  model: FactorModel,
  positives: RatingBlock,
  exclude: RatingBlock | undefined,
  ks: readonly number[],
  ctx: ExecutionContext,
): Promise<ListCounts> {
  const items = keyCount(model.items);
  const counts = noLists(items, ks);
  const n = Math.min(items, Math.max(...ks) + 1);
  const { info } = computeDevice(ctx.executor);
  const tied: number[] = [];
  await Holdings.within(ctx, async (held) => {
    // The faster search, which sorts items by norm to bound their scores, may return other items of equal
    // scores.
    const placed = await placeItems(model, {}, info.place, held);
    const top = await topLists(placed, { model, n, exclude }, info, held);
    for await (const { from, to, items: found, scores } of mapOrdered(
      ranges(positives.rows, usersPerTask(info, n)),
      inFlight(info),
      top,
    )) {
      for (let user = from; user < to; user++) {
        if (positives.offsets[user] === positives.offsets[user + 1]) continue;
        const at = (user - from) * n;
        let length = 0;
        while (length < n && found[at + length] !== NO_ITEM) length++;
        const isTied = (place: number, other: number) => scores[at + place] === scores[at + other];
        const goesOn = length === n && n < items;
        if (goesOn && ks.some((k) => isTied(k - 1, n - 1))) tied.push(user);
        else addList(counts, ks, found.subarray(at, at + n), isTied, length);
      }
    }
  });
  const some = Math.max(1, Math.floor(TIED_PAIRS / items));
  for (let from = 0; from < tied.length; from += some) {
    const lists = unseenItems(positives.rows, items, exclude, tied.slice(from, from + some));
    addListed(counts, ks, lists, await listedScores(model, lists, { ...ctx, events: () => {} }));
  }
  return counts;
}

/** All items that the given users have not seen; none of other users. */
function unseenItems(
  rows: number,
  items: number,
  exclude: RatingBlock | undefined,
  users: readonly number[],
): RatingBlock {
  const lists = users.map((user) =>
    Uint32Array.from({ length: items }, (_, item) => item).filter(
      (item) => exclude === undefined || !holds(exclude, user, item),
    ),
  );
  const lengths = new Int32Array(rows);
  users.forEach((user, at) => (lengths[user] = lists[at].length));
  const partition = emptyBlock(lengths);
  let filled = 0;
  for (const list of lists) {
    (partition.columns.indices as Uint32Array).set(list, filled);
    filled += list.length;
  }
  return blockOf({ name: dataSetName('unseen-items'), partition: 0, version: 0 }, partition);
}
