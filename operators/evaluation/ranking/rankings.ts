import { startPhase } from '../../../engine/events.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import { sharedCopy } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { blockOfColumns, type RatingBlock } from '../../ratings/ratings.ts';
import { type FactorModel, placeForPairs } from '../../serving/factor-model.ts';
import { scorePositions } from '../../serving/predict.ts';
import { inFlight, NO_ITEM, placeItems, ranges, topLists, usersPerTask } from '../../serving/top-lists.ts';
import {
  addList,
  addListed,
  type ListCounts,
  listCountsByOrder,
  noLists,
  orderOf,
  placesByOrder,
  rankedLists,
} from './item-order.ts';
import type { Rankings } from './measure-rankings.ts';
import { hasItem, type UsersToRank } from './ranked-pairs.ts';
import { PositiveRanks } from './validation-metric.ts';

/** Rankings of all items by a model. */
export function modelRankings(
  model: FactorModel,
  { positives, seen }: UsersToRank,
  ctx: ExecutionContext,
): Rankings {
  return {
    places: (depth) => new PositiveRanks(positives, seen, ctx).places(model, depth),
    lists: (ks) => listCounts(model, positives, seen, ks, ctx),
  };
}

/** Rankings that are the same for every user, by a score of each item. */
export function sharedRankings(
  scores: ArrayLike<number>,
  { positives, seen }: UsersToRank,
  { signal }: Pick<ExecutionContext, 'signal'>,
): Rankings {
  const order = orderOf(scores);
  return {
    places: () => placesByOrder(order, positives, seen, signal),
    lists: async (ks) => listCountsByOrder(order, positives, seen, ks),
  };
}

/** Pairs of users and items that are scored together, for lists that end within equal scores. */
const TIED_PAIRS = 1 << 22;

/**
 * Counts the items in the recommendation lists of a model, for the users with test items (`positives`). The
 * search returns one item more than the longest list, so that a list that ends within equal scores is
 * noticed. All items of such a user are then scored.
 */
async function listCounts(
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
      (item) => exclude === undefined || !hasItem(exclude, user, item),
    ),
  );
  const lengths = new Int32Array(rows);
  users.forEach((user, at) => (lengths[user] = lists[at].length));
  return blockOfColumns('unseen-items', lists, lengths);
}

/** Lists of items, one for each user, and the positives among them: blocks over the same users. */
interface ListedPairs {
  readonly lists: RatingBlock;
  readonly positives: RatingBlock;
  /** Number of all items. */
  readonly items: number;
}

/** Rankings of each user's list by a score of each entry. */
export function listedRankings(
  scores: ArrayLike<number>,
  { lists, positives, items }: ListedPairs,
): Rankings {
  return {
    places: async () => {
      const places = new Uint32Array(2 * positives.ratings);
      for (const { user, order, above, ties } of rankedLists(scores, lists)) {
        const placeOf = new Map(Array.from(order, (k, place) => [lists.indices[k], place]));
        for (let k = positives.offsets[user]; k < positives.offsets[user + 1]; k++) {
          const place = placeOf.get(positives.indices[k]);
          if (place !== undefined) places.set([above[place], ties[place]], 2 * k);
        }
      }
      return places;
    },
    lists: async (ks) => {
      const counts = noLists(items, ks);
      addListed(counts, ks, lists, scores);
      return counts;
    },
  };
}

/** Score of each entry's item. */
export function scoresOfItems(scores: ArrayLike<number>, { indices }: RatingBlock): Float64Array {
  return Float64Array.from(indices, (item) => scores[item]);
}

/** Pairs of one task. */
const PAIRS = 1 << 18;

/** x_uᵀθ_v of each entry of the lists; entries are positions in the model. */
export function listedScores(
  model: FactorModel,
  { offsets, indices, rows }: RatingBlock,
  ctx: ExecutionContext,
): Promise<Float32Array> {
  const users = new Uint32Array(indices.length);
  for (let user = 0; user < rows; user++) users.fill(user, offsets[user], offsets[user + 1]);
  const scores = new Float32Array(indices.length);
  const phase = startPhase(ctx.events, 'rank', 'candidates', scores.length);
  return Holdings.within(ctx, async (held) => {
    const factors = await placeForPairs(model, held);
    const chunks = async function* () {
      for (let from = 0; from < scores.length; from += PAIRS) yield from;
    };
    const score = async (from: number) => ({
      from,
      values: await scorePositions(
        sharedCopy(users.subarray(from, from + PAIRS)),
        sharedCopy(indices.subarray(from, from + PAIRS)),
        { rank: model.rank, factors },
        held,
      ),
    });
    for await (const { from, values } of mapOrdered(
      chunks(),
      2 * computeDevice(ctx.executor).info.parallelism,
      score,
    )) {
      scores.set(values, from);
      phase.progress(from + values.length);
    }
    phase.end(scores.length);
    return scores;
  });
}
