import { sharedArray } from '../../engine/partition.ts';
import { blockOf, type BlockArrays, type ScopeOf, type TaskHandler } from '../handler.ts';
import { numbersOf } from './invert-items.ts';
import { BestItems, NO_ITEM } from './similar-items.ts';

export const rankByItems: TaskHandler<'rank-by-items'> = (scope) => {
  const { from, to, items, ks } = scope.params;
  const [history, listed] = [blockOf(scope, 'history'), blockOf(scope, 'listed')];
  const first = listed.offsets[from];
  const scores = sharedArray(Float32Array, listed.offsets[to] - first);
  const places = sharedArray(Uint32Array, 2 * scores.length);
  const counts = {
    lists: sharedArray(Float64Array, ks.length * items),
    unlisted: sharedArray(Float64Array, ks.length * items).fill(1),
  };
  const score = scope.hasMatrix('matrix') ? sumsOfMatrix(scope) : sumsOfWeights(scope);
  const sums = new Float32Array(items);
  const best = new BestItems(Math.min(items, Math.max(0, ...ks)));
  for (let user = from; user < to && !scope.cancelled(); user++) {
    const [start, end] = [listed.offsets[user], listed.offsets[user + 1]];
    if (start === end) continue;
    score(history, user, sums);
    for (let k = start; k < end; k++) scores[k - first] = sums[listed.indices[k]];
    for (let k = history.offsets[user]; k < history.offsets[user + 1]; k++)
      sums[history.indices[k]] = -Infinity;
    for (let k = start; k < end; k++) places.set(placeOf(listed.indices[k], sums), 2 * (k - first));
    if (ks.length === 0) continue;
    best.clear();
    sums.forEach((sum, item) => {
      if (sum > -Infinity) best.offer(item, sum);
    });
    ks.forEach((k, i) => countList(sums, best, k, i * items, counts));
  }
  return {
    rows: to - from,
    partitions: {
      ranked: { layout: 'ranked-items', rows: to - from, columns: { scores, places, ...counts } },
    },
  };
};

interface Counts {
  readonly lists: Float64Array;
  readonly unlisted: Float64Array;
}

/** Adds a user's list of k items to the counts from `first` on. */
function countList(sums: Float32Array, best: BestItems, k: number, first: number, counts: Counts): void {
  const add = (item: number, chance: number) => {
    counts.lists[first + item] += chance;
    counts.unlisted[first + item] *= 1 - chance;
  };
  const most = Math.min(k, best.items.length);
  const end = best.items.subarray(0, most).indexOf(NO_ITEM);
  if (end >= 0 || most < k) {
    for (const item of best.items.subarray(0, end < 0 ? most : end)) add(item, 1);
    return;
  }
  const last = sums[best.items[k - 1]];
  const above = best.scores.subarray(0, k).findIndex((score) => score === last);
  for (const item of best.items.subarray(0, above)) add(item, 1);
  const tied = sums.reduce((count, sum) => count + (sum === last ? 1 : 0), 0);
  sums.forEach((sum, item) => {
    if (sum === last) add(item, (k - above) / tied);
  });
}

/** Writes the score of every item for a user. */
type Scores = (history: BlockArrays, user: number, sums: Float32Array) => void;

function sumsOfWeights(scope: ScopeOf<'rank-by-items'>): Scores {
  const { offsets, indices, values } = blockOf(scope, 'weights');
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

/** Number of items with a higher score, and with the same score. */
function placeOf(item: number, sums: Float32Array): [number, number] {
  const own = sums[item];
  let [above, tied] = [0, 0];
  for (const sum of sums) {
    if (sum > own) above++;
    else if (sum === own) tied++;
  }
  return [above, tied];
}
