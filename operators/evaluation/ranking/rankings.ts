import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import { orderOf, placesByOrder } from './item-order.ts';
import { type ListCounts, listCountsByOrder } from './list-counts.ts';
import { listCounts } from './model-lists.ts';
import { PositiveRanks } from './rank-positives.ts';

/** Computes rankings for a fixed set of users who have test items: ranks of the test items, and top lists. */
export interface Rankings {
  /**
   * Two numbers for each test item, in the order of their block: its rank, the number of ranked items with
   * higher scores; and its ties, the number of ranked items with its score, itself among them (0 if it has no
   * score). If `depth` is given, only the first `depth` ranks are exact; any other rank may be any number of
   * at least `depth`, with any ties.
   */
  places(depth: number | undefined): Promise<Uint32Array>;
  /** For each k: in how many users' first k items each item is expected. `ks` ascend. */
  lists(ks: readonly number[]): Promise<ListCounts>;
}

/** Users with positives, and the pairs not to rank: blocks over the same users and items. */
export interface UsersToRank {
  readonly positives: RatingBlock;
  readonly seen: RatingBlock | undefined;
}

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
