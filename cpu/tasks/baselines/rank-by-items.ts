import { sharedArray } from '../../../engine/partition.ts';
import type { ScopeOf, TaskHandler } from '../../handler.ts';
import { BestItems, NO_ITEM } from './best-items.ts';
import { numbersOf } from './invert-items.ts';
import { type Pairs, pairsOf } from './users-in-common.ts';

/** See `rank-by-items` of KernelTasks. */
export const rankByItems: TaskHandler<'rank-by-items'> = (scope) => {
  const { from, to, items, top } = scope.params;
  const [history, listed] = [pairsOf(scope, 'history'), pairsOf(scope, 'listed')];
  const first = listed.offsets[from];
  const scores = sharedArray(Float32Array, listed.offsets[to] - first);
  const places = sharedArray(Uint32Array, scores.length);
  const lists = sharedArray(Uint32Array, (to - from) * top).fill(NO_ITEM);
  const score = scope.hasMatrix('matrix') ? sumsOfMatrix(scope) : sumsOfWeights(scope);
  const sums = new Float32Array(items);
  const best = new BestItems(top);
  for (let user = from; user < to && !scope.cancelled(); user++) {
    const [start, end] = [listed.offsets[user], listed.offsets[user + 1]];
    if (start === end) continue;
    score(history, user, sums);
    for (let k = start; k < end; k++) scores[k - first] = sums[listed.indices[k]];
    for (let k = history.offsets[user]; k < history.offsets[user + 1]; k++)
      sums[history.indices[k]] = -Infinity;
    for (let k = start; k < end; k++) places[k - first] = placeOf(listed.indices[k], sums);
    if (top === 0) continue;
    best.clear();
    sums.forEach((sum, item) => {
      if (sum > -Infinity) best.offer(item, sum);
    });
    lists.set(best.items, (user - from) * top);
  }
  return {
    rows: to - from,
    partitions: {
      ranked: { layout: 'ranked-items', rows: to - from, columns: { scores, places, top: lists } },
    },
  };
};

/** Writes the score of every item for a user. */
type Scores = (history: Pairs, user: number, sums: Float32Array) => void;

function sumsOfWeights(scope: ScopeOf<'rank-by-items'>): Scores {
  const { offsets, indices, values } = scope.partition('weights').columns as {
    offsets: Int32Array;
    indices: Uint32Array;
    values: Float32Array;
  };
  return (history, user, sums) => {
    sums.fill(0);
    for (let k = history.offsets[user]; k < history.offsets[user + 1]; k++) {
      const item = history.indices[k];
      for (let w = offsets[item]; w < offsets[item + 1]; w++) sums[indices[w]] += values[w];
    }
  };
}

/** With -P in the matrix, the sum of -P_ij / P_jj over the items i of the history. */
function sumsOfMatrix(scope: ScopeOf<'rank-by-items'>): Scores {
  const [matrix, { stride }] = [numbersOf(scope, 'matrix'), scope.matrix('matrix')];
  const scales = Float32Array.from(
    { length: scope.params.items },
    (_, item) => -1 / matrix[item * stride + item],
  );
  return (history, user, sums) => {
    sums.fill(0);
    for (let k = history.offsets[user]; k < history.offsets[user + 1]; k++) {
      const start = history.indices[k] * stride;
      for (let item = 0; item < sums.length; item++) sums[item] += matrix[start + item];
    }
    for (let item = 0; item < sums.length; item++) sums[item] *= scales[item];
  };
}

/** Number of items with a higher score, or with the same score and a lower number. */
function placeOf(item: number, sums: Float32Array): number {
  const own = sums[item];
  let before = 0;
  for (let other = 0; other < item; other++) if (sums[other] >= own) before++;
  for (let other = item + 1; other < sums.length; other++) if (sums[other] > own) before++;
  return before;
}
