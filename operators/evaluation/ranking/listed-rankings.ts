import { computeDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import { type FactorModel, placeForPairs } from '../../serving/factor-model.ts';
import { scorePositions } from '../../serving/predict.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { addTo } from './list-counts.ts';
import type { Rankings } from './rankings.ts';

/** Pairs of one task. */
const PAIRS = 1 << 18;

/** Lists of items, one for each user, and the positives among them: blocks over the same users. */
export interface ListedPairs {
  readonly lists: RatingBlock;
  readonly positives: RatingBlock;
  /** Number of all items. */
  readonly items: number;
}

/** Rankings of each user's list by a score of each entry; equal scores are ordered by item id. */
export function listedRankings(
  scores: ArrayLike<number>,
  { lists, positives, items }: ListedPairs,
): Rankings {
  const ranked = function* () {
    for (let user = 0; user < lists.rows; user++) {
      const [start, end] = [lists.offsets[user], lists.offsets[user + 1]];
      // Items of a list ascend, so a stable sort keeps that order for ties.
      const order = Uint32Array.from({ length: end - start }, (_, k) => start + k).sort(
        (left, right) => scores[right] - scores[left] || left - right,
      );
      yield { user, list: order.map((k) => lists.indices[k]) };
    }
  };
  return {
    places: async () => {
      const places = new Uint32Array(positives.ratings);
      for (const { user, list } of ranked()) {
        const placeOf = new Map(Array.from(list, (item, place) => [item, place]));
        for (let k = positives.offsets[user]; k < positives.offsets[user + 1]; k++)
          places[k] = placeOf.get(positives.indices[k]) ?? list.length;
      }
      return places;
    },
    lists: async (ks) => {
      const counts = ks.map(() => new Uint32Array(items));
      const most = Math.max(...ks);
      for (const { list } of ranked())
        list.subarray(0, most).forEach((item, place) => addTo(counts, ks, item, place));
      return counts;
    },
  };
}

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
        shared(users, from),
        shared(indices, from),
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

function shared(values: Uint32Array, from: number): Uint32Array {
  const part = values.subarray(from, from + PAIRS);
  const copy = sharedArray(Uint32Array, part.length);
  copy.set(part);
  return copy;
}

/** Score of each entry's item. */
export function scoresOfItems(scores: ArrayLike<number>, { indices }: RatingBlock): Float64Array {
  return Float64Array.from(indices, (item) => scores[item]);
}
