import { UsageError } from '../../../engine/errors.ts';
import { noEvents, startPhase } from '../../../engine/events.ts';
import { formatCount } from '../../../engine/format.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import { concatenate } from '../../../engine/numbers/concatenate.ts';
import { dataSetName, type PartitionRef, partitionRef } from '../../../engine/partition.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { giveTo } from '../../../engine/run/run-steps.ts';
import { type RatingBlock, blockOf, emptyBlock, hostForm, withoutValues } from '../../ratings/ratings.ts';
import { balancedRanges, rangesOfSize } from '../../ratings/row-ranges.ts';
import { transposeBlock } from '../../ratings/sorting/sort-rows.ts';
import { NO_ITEM } from '../../serving/top-lists.ts';
import { outputsOf, TaskRun } from '../../tasks/run-tasks.ts';
import { type TaskOf } from '../../tasks/tasks.ts';
import { type ItemFacts, itemFacts, noLists } from './item-order.ts';
import { measureRankings, type Ranked, type Rankings } from './measure-rankings.ts';
import type { BaselinePairs } from './ranked-pairs.ts';
import {
  type ChosenMetrics,
  metricsAt,
  parseMetric,
  type RankingBaseline,
  type RankingBaselines,
} from './ranking-metrics.ts';
import { listedRankings, scoresOfItems, sharedRankings } from './rankings.ts';
import { type RankedUsers, type ValidationPairs, validationRanking } from './validation-metric.ts';

/** The training pairs of the baselines, and facts about them. */
export interface BaselineTraining {
  readonly block: RatingBlock;
  readonly facts: ItemFacts;
}

/** Measures baselines on the same users and items as the model. */
export async function measureBaselines(
  baselines: readonly RankingBaseline[],
  { block, facts }: BaselineTraining,
  {
    pairs,
    ranked,
    chosen,
  }: {
    readonly pairs: BaselinePairs;
    readonly ranked: Omit<Ranked, 'places'>;
    readonly chosen: ChosenMetrics;
  },
  ctx: ExecutionContext,
): Promise<RankingBaselines> {
  const ks = [...new Set(chosen.lists.map(({ k }) => k))];
  const measure = async (rankings: Rankings) =>
    (await measureRankings(rankings, ranked, chosen, facts)).metrics;
  const fromItems = (baseline: ItemBaseline) =>
    Holdings.within(ctx, async (held) => {
      const weights = await itemWeights(baseline, block, facts.counts, held);
      return measure(await rankingsByItems(weights, pairs, ks, held));
    });
  const wants = (name: RankingBaseline) => baselines.includes(name);
  return {
    ...(wants('popularity') && { popularity: await measure(rankingsOfAll(facts.counts, pairs, ctx)) }),
    ...(wants('item-mean') &&
      facts.means && { itemMean: await measure(rankingsOfAll(facts.means, pairs, ctx)) }),
    ...(wants('item-knn') && { itemKnn: await fromItems('item-knn') }),
    ...(wants('ease') && { ease: await fromItems('ease') }),
  };
}

/** Rankings by a score of each item, the same for all users. */
function rankingsOfAll(scores: ArrayLike<number>, pairs: BaselinePairs, ctx: ExecutionContext): Rankings {
  const { model, positives, lists } = pairs;
  return lists === undefined
    ? sharedRankings(scores, pairs, ctx)
    : listedRankings(scoresOfItems(scores, lists), { lists, positives, items: keyCount(model.items) });
}

/**
 * Values of a ranking metric on a validation set by baselines, for the same users and pairs as a model's.
 * Repeated pairs of `train` count once. `hasRatings`: its values are ratings, and have means.
 */
export async function validationBaselines(
  name: string,
  baselines: readonly RankingBaseline[],
  { hasRatings, ...pairs }: ValidationPairs & { readonly hasRatings: boolean },
  ranked: RankedUsers,
  ctx: ExecutionContext,
): Promise<Partial<Record<keyof RankingBaselines, number>>> {
  const { metric, k = 1 } = parseMetric(name, 'metric');
  const { items, train } = pairs;
  const { positives, excluded } = validationRanking(name, pairs, ranked, { events: noEvents });
  const measured = await measureBaselines(
    baselines,
    { block: train, facts: itemFacts(train, keyCount(items), hasRatings) },
    {
      pairs: { model: { items }, positives, seen: train },
      ranked: { positives, items: keyCount(items), excluded },
      chosen: metricsAt([[metric, k]]),
    },
    ctx,
  );
  return Object.fromEntries(Object.entries(measured).map(([baseline, values]) => [baseline, values[name]]));
}

/** Neighbours of an item, and the shrink term of their cosine. */
const [NEIGHBOURS, SHRINK] = [100, 10];
/** λ of EASE, in users. */
const LAMBDA = 500;
/** Most items of EASE: the matrix has 1.6 GB then, and its inversion takes some minutes on two cores. */
const MOST_ITEMS = 20_000;
/** Rows and columns of a block of the sweep. */
const BLOCK = 128;
/** Rows of one task of a sweep, a multiple of 8. */
const SWEPT_ROWS = 128;

/** Rankings by weights from item to item. */
type ItemBaseline = 'item-knn' | 'ease';

/** Weights on the CPU device, as `rank-by-items` reads them. */
type ItemWeights = { readonly weights: PartitionRef } | { readonly matrix: PartitionRef };

/**
 * Computes the weights of a baseline from the training pairs, a block without repeated pairs.
 *
 * - `item-knn`: the cosine of the two items' sets of users, of the 100 nearest neighbours of each item that
 *   is scored (Sarwar et al. 2001, Item-based collaborative filtering recommendation algorithms), with 10
 *   added to the denominator
 * - `ease`: see operators/tasks/baseline-tasks.ts; λ = 500. Throws UsageError for more than 20,000 items.
 */
async function itemWeights(
  baseline: ItemBaseline,
  pairs: RatingBlock,
  counts: Uint32Array,
  ctx: ExecutionContext,
): Promise<ItemWeights> {
  if (baseline === 'ease' && counts.length > MOST_ITEMS)
    throw new UsageError(
      `the baseline ease inverts a matrix of all items, and has at most ${formatCount(MOST_ITEMS)}; ` +
        `there are ${formatCount(counts.length)}`,
      { advice: 'Leave ease out of the option baselines, or keep fewer items' },
    );
  const set = dataSetName(baseline);
  const { info } = hostDevice(ctx.executor);
  const byUser: RatingBlock = { ...pairs, ref: partitionRef(`${set}/pairs`) };
  await giveTo(ctx, info.place, [[byUser.ref, hostForm(byUser)]]);
  const byItem = await transposeBlock(byUser, Int32Array.from(counts), ctx);
  await giveTo(ctx, info.place, [[byItem.ref, withoutValues(byItem)]]);
  const items = { set, info, byUser: byUser.ref, byItem };
  return baseline === 'ease' ? invertedPairs(items, ctx) : neighbours(items, ctx);
}

interface Items {
  readonly set: string;
  readonly info: DeviceInfo;
  readonly byUser: PartitionRef;
  readonly byItem: RatingBlock;
}

/** A block with a row for each item of a history: the items that it is a neighbour of. */
async function neighbours(
  { set, info: { place }, byUser, byItem }: Items,
  ctx: ExecutionContext,
): Promise<ItemWeights> {
  const phase = startPhase(ctx.events, 'item-knn', 'items', byItem.rows);
  const ranges = balancedRanges(byItem.offsets, 64);
  const tasks = ranges.map(({ from, to }, partition): TaskOf<'similar-items'> => ({
    kernel: 'similar-items',
    inputs: { byUser, byItem: byItem.ref },
    outputs: { similar: partitionRef(`${set}/similar`, partition) },
    params: { from, to, count: NEIGHBOURS, shrink: SHRINK },
  }));
  const progress = (done: number) => phase.progress(ranges[done - 1]?.to ?? 0);
  const handed = await outputsOf(new TaskRun(ctx, 'item-knn'), tasks, progress);
  const lists = handed.map(({ columns }) => columns as { items: Uint32Array; values: Float32Array });
  const lengths = new Int32Array(byItem.rows);
  for (const { items } of lists) for (const item of items) if (item !== NO_ITEM) lengths[item]++;
  const ref = partitionRef(`${set}/weights`);
  const block = blockOf(ref, emptyBlock(lengths));
  const next = block.offsets.slice();
  lists.forEach(({ items, values }, list) =>
    items.forEach((item, k) => {
      if (item === NO_ITEM) return;
      block.indices[next[item]] = ranges[list].from + Math.floor(k / NEIGHBOURS);
      block.values[next[item]++] = values[k];
    }),
  );
  await giveTo(ctx, place, [[ref, hostForm(block)]]);
  phase.end(byItem.rows);
  return { weights: ref };
}

/** -(XᵀX + λI)⁻¹. */
async function invertedPairs(
  { set, info: { strideStep }, byUser, byItem }: Items,
  ctx: ExecutionContext,
): Promise<ItemWeights> {
  const n = byItem.rows;
  const phase = startPhase(ctx.events, 'ease', 'items', n);
  const matrix = partitionRef(`${set}/matrix`);
  const padded = (columns: number) => Math.ceil(columns / strideStep) * strideStep;
  const shape = (rows: number, columns: number) => ({ rows, columns, stride: padded(columns) });
  const run = new TaskRun(ctx, 'ease');
  const count = { lambda: LAMBDA };
  const pairs = { byUser, byItem: byItem.ref };
  run.keep(matrix, shape(n, n));
  run.sliced(
    { kernel: 'count-pairs-of-items', inputs: pairs, outputs: { matrix }, params: count },
    balancedRanges(byItem.offsets, 64),
  );
  const swept = {
    panels: run.make(run.ref('panels'), shape(Math.ceil(n / 8), 8 * BLOCK)),
    inverse: run.make(run.ref('inverse'), shape(BLOCK, BLOCK)),
  };
  const rows = rangesOfSize(n, SWEPT_ROWS);
  for (let first = 0; first < n; first += BLOCK) {
    const params = { first, count: Math.min(BLOCK, n - first) };
    run.task({ kernel: 'begin-sweep', inputs: { matrix }, outputs: swept, params });
    run.sliced({ kernel: 'sweep-rows', inputs: swept, outputs: { matrix }, params }, rows);
  }
  run.sliced({ kernel: 'mirror-rows', inputs: {}, outputs: { matrix }, params: {} }, rows);
  await run.end((done, of) => phase.progress(Math.floor((done / of) * n)));
  phase.end(n);
  return { matrix };
}

const STAGE = 'rank-by-items';

/** Most tasks that count lists, each of which returns two numbers for every item and k. */
const MOST_COUNTS = 32;

/**
 * Rankings for each user by the sum of weights from the items that the user has seen. `ks`: the lengths of
 * lists to count, ascending.
 */
async function rankingsByItems(
  weights: ItemWeights,
  { model, positives, seen, lists }: BaselinePairs,
  ks: readonly number[],
  ctx: ExecutionContext,
): Promise<Rankings> {
  const items = keyCount(model.items);
  const listed = lists ?? positives;
  if (seen === undefined) throw new Error('rankings by items need the items that users have seen');
  const { place } = hostDevice(ctx.executor).info;
  const set = dataSetName(STAGE);
  const [history, entries] = ['history', 'listed'].map((name) => partitionRef(`${set}/${name}`));
  await giveTo(ctx, place, [
    [history, withoutValues(seen)],
    [entries, withoutValues(listed)],
  ]);
  const phase = startPhase(ctx.events, 'rank', 'users', listed.rows);
  const counted = lists ? [] : ks;
  const most = counted.length > 0 ? MOST_COUNTS : 256;
  const ranges = balancedRanges(listed.offsets, Math.max(1, Math.min(most, Math.ceil(listed.ratings / 64))));
  const tasks = ranges.map(({ from, to }, partition): TaskOf<'rank-by-items'> => ({
    kernel: 'rank-by-items',
    inputs: { history, listed: entries, ...weights },
    outputs: { ranked: partitionRef(`${set}/ranked`, partition) },
    params: { from, to, items, ks: counted },
  }));
  const progress = (done: number) => phase.progress(ranges[done - 1]?.to ?? 0);
  const handed = await outputsOf(new TaskRun(ctx, STAGE), tasks, progress);
  phase.end(listed.rows);
  const parts = handed.map(({ columns }) => columns as unknown as RankedPart);
  if (lists === undefined) return rankingsOfParts(parts, items, ks);
  const scores = concatenate(
    Float32Array,
    parts.map((part) => part.scores),
  );
  return listedRankings(scores, { lists, positives, items });
}

/** The output of `rank-by-items` for a range of users. */
interface RankedPart {
  readonly scores: Float32Array;
  readonly places: Uint32Array;
  readonly lists: Float64Array;
  readonly unlisted: Float64Array;
}

/** The rankings in the outputs of tasks for consecutive ranges of users. */
function rankingsOfParts(parts: readonly RankedPart[], items: number, ks: readonly number[]): Rankings {
  return {
    places: async () =>
      concatenate(
        Uint32Array,
        parts.map((part) => part.places),
      ),
    lists: async (wanted) => {
      const counts = noLists(items, wanted);
      wanted.forEach((k, i) => {
        const first = ks.indexOf(k) * items;
        for (const part of parts)
          for (let item = 0; item < items; item++) {
            counts[i].lists[item] += part.lists[first + item];
            counts[i].unlisted[item] *= part.unlisted[first + item];
          }
      });
      return counts;
    },
  };
}
