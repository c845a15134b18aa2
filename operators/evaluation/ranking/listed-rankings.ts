import type { RatingBlock } from '../../ratings/rating-block.ts';
import { addListed, noLists, rankedLists } from './list-counts.ts';
import type { Rankings } from './rankings.ts';

/** Lists of items, one for each user, and the positives among them: blocks over the same users. */
export interface ListedPairs {
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
