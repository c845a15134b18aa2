import { type KeyColumn, keyCount, takeKeys } from '../../../engine/keys/key-column.ts';
import { dataSetName, partitionRef } from '../../../engine/partition.ts';
import { readRows, type RowParts } from '../../../engine/row-parts.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { giveTo } from '../../../engine/run/run-steps.ts';
import { hostForm, type RatingBlock, type Ratings, soleBlock } from '../../ratings/ratings.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import type { ModelRows } from '../../training/model-rows.ts';
import { measureRankings } from './measure-rankings.ts';
import {
  distinctItems,
  drawUsers,
  rankedTest,
  rowsAt,
  seenRows,
  usersOf,
  usersOfItems,
} from './ranked-pairs.ts';
import { metricsAt, type MetricValues } from './ranking-metrics.ts';
import { modelRankings, sharedRankings } from './rankings.ts';

/** Rankings of held-out pairs by a model that was just trained, as plain data. */
export interface HeldOutRanking {
  /** ndcg@10, recall@20, hit-rate@10 and coverage@10; means over users. */
  readonly metrics: MetricValues;
  /** The same metrics for items ranked by their number of users in the training ratings. */
  readonly popularity: MetricValues;
  /** Number of users in the means, and of users who could be ranked; more if some were drawn. */
  readonly users: number;
  readonly availableUsers: number;
  /** Held-out pairs that are not ranked: also in the training ratings, or repeating another. */
  readonly leakedPairs: number;
  readonly repeatedPairs: number;
}

const METRICS = metricsAt([
  ['ndcg', 10],
  ['recall', 20],
  ['hit-rate', 10],
  ['coverage', 10],
]);

export interface HeldOutOptions {
  /** Most users to rank. */
  readonly rankUsers: number;
  readonly seed: number;
  /** Number of users of each item, if known. */
  readonly itemUsers?: ArrayLike<number> | undefined;
}

/** Held-out pairs and training ratings, both by user, over the same ids. */
export interface HeldOutSets {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  readonly test: RatingBlock;
  readonly train: Ratings;
}

/**
 * Held-out pairs that models over the same users and items can rank one after the other. It holds the ranked
 * users' pairs and their training ratings, which are not ranked.
 */
export interface HeldOutPairs {
  /**
   * Metrics of a model with the same users and items. Throws CapacityError if the device has no room for its
   * factors.
   */
  rank(sides: ModelRows, ctx: ExecutionContext): Promise<HeldOutRanking>;
}

/** Selects the users to rank and their pairs, before training. Undefined if no user is left. */
export async function heldOutPairs(
  { users, items, test, train }: HeldOutSets,
  { rankUsers, seed, itemUsers }: HeldOutOptions,
  ctx: ExecutionContext,
): Promise<HeldOutPairs | undefined> {
  // Pairs that are also training ratings are removed. If the training ratings are in several parts,
  // possibly in files, only the drawn users' ratings are read for this, after the draw.
  const block = soleBlock(train);
  const whole = rankedTest(test, block);
  const eligible = usersOf(whole.positives);
  const drawn = drawUsers(users, eligible, rankUsers, seed);
  const known = block ? rowsAt(block, drawn) : await seenRows(train, drawn, ctx);
  const { positives, leaked, repeated } = block
    ? { ...whole, positives: rowsAt(whole.positives, drawn) }
    : rankedTest(rowsAt(test, drawn), known);
  if (positives.ratings === 0) return undefined;
  const counts = itemUsers ? Uint32Array.from(itemUsers) : await usersOfItems(train, keyCount(items), ctx);
  const facts = { users: keyCount(users), counts };
  const leftOut = { availableUsers: eligible.length, leakedPairs: leaked, repeatedPairs: repeated };
  const ids = { users: takeKeys(users, drawn), items };
  const ranked = { positives, items: keyCount(items), excluded: distinctItems(known) };
  const rank = async (sides: ModelRows, held: ExecutionContext): Promise<HeldOutRanking> => {
    using _ = held.metrics.begin('rank');
    // The name on the device is new in each call, since trials of a parameter search may rank at the same
    // time.
    const seen = { ...known, ref: partitionRef(dataSetName('seen')) };
    await giveTo(held, hostDevice(held.executor).info.place, [[seen.ref, hostForm(seen)]]);
    const model: FactorModel = {
      rank: sides.users.columns,
      ...ids,
      userFactors: rowsOf(sides.users, drawn),
      itemFactors: readRows(sides.items, 0, sides.items.rows, true),
    };
    const pairs = { positives, seen };
    const own = await measureRankings(modelRankings(model, pairs, held), ranked, METRICS, facts);
    const byCounts = sharedRankings(counts, pairs, held);
    const { metrics: popularity } = await measureRankings(byCounts, ranked, METRICS, facts);
    return { metrics: own.metrics, popularity, users: own.values.users, ...leftOut };
  };
  return { rank: (sides, own) => Holdings.within(own, (held) => rank(sides, held)) };
}

/** Some rows of a matrix that may be in parts. */
function rowsOf(rows: RowParts, positions: Uint32Array): Float32Array {
  const { columns } = rows;
  const values = new Float32Array(positions.length * columns);
  positions.forEach((row, at) => values.set(readRows(rows, row, row + 1), at * columns));
  return values;
}
