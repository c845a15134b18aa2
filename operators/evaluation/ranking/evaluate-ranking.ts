import type { RecordBatch } from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import { formatCount } from '../../../engine/format.ts';
import { keysFromData, keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import { keyCount, type KeyTable, takeKeys, UNKNOWN_KEY } from '../../../engine/keys/key-column.ts';
import { makeKeyTable } from '../../../engine/keys/tables/make-key-table.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import type { Sink } from '../../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../../engine/stream/stream.ts';
import { columnOf, takeRows } from '../../dataflow/row-operator.ts';
import { collectKnownPairs } from '../../ratings/ids/known-pairs.ts';
import type { RatingBlock } from '../../ratings/ratings.ts';
import { sortByUser } from '../../ratings/sort-ratings.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import {
  coldWarnings,
  compareToPopularity,
  type HalfLifeToTry,
  type RankedTraining,
  withHalfLife,
  type TrainingWarning,
} from '../model-warnings.ts';
import { isCold, type RowCounts } from '../rating-facts.ts';
import { itemFacts } from './item-order.ts';
import { type BaselineTraining, measureBaselines } from './measure-baselines.ts';
import { measureRankings, partOf, type Ranked, type Rankings, userValues } from './measure-rankings.ts';
import {
  type CandidateCounts,
  candidateLists,
  type CandidatePairs,
  distinctItems,
  drawnPairs,
  type RankedPairs,
  rankedTest,
} from './ranked-pairs.ts';
import {
  type ChosenMetric,
  chosenMetrics,
  type MetricValues,
  type NamedMeasure,
  type RankingBaseline,
  type RankingBaselines,
} from './ranking-metrics.ts';
import { listedRankings, listedScores, modelRankings } from './rankings.ts';

/** Pairs not to rank: a block over the users and items of the model. */
export interface ExcludedPairs {
  readonly block: RatingBlock;
  readonly hasRatings: boolean;
  /** Number of pairs with a user or item that the model does not know. */
  readonly unknown: number;
}

export interface RankingSettings {
  readonly metrics: readonly ChosenMetric[];
  readonly ks: readonly number[];
  readonly minRating?: number;
  readonly coldPairs: 'drop' | 'miss';
  /** Baselines to measure, if there are excluded pairs to compute them from. */
  readonly baselines: readonly RankingBaseline[];
  readonly resamples: number;
  readonly seed: number;
  /** Most users to rank; if there are more, `rankUsers` of them are drawn by the seed. */
  readonly rankUsers: number;
  /** The model's training, for advice. */
  readonly training?: RankedTraining | undefined;
  readonly halfLifeToTry?: HalfLifeToTry | undefined;
  /** By position in the model, if known. */
  readonly counts?: RowCounts | undefined;
  /** Pairs seen in training; read before the test pairs are ranked. */
  readonly exclude?: (ctx: ExecutionContext) => Promise<ExcludedPairs>;
  /** Pairs to rank instead of all items. */
  readonly candidates?: ((ctx: ExecutionContext) => Promise<CandidatePairs>) | undefined;
}

/** The metrics of some of the test pairs: the users' other positives count as items that are not relevant. */
type RankedPart = {
  readonly metrics: MetricValues;
  /** Users with such pairs, over whom means are taken, and the number of pairs. */
  readonly users: number;
  readonly pairs: number;
};

export interface RankingEvaluation {
  /** Means over users; NaN without users. */
  readonly metrics: MetricValues;
  /**
   * The metrics of single users for pairs whose user and item have training ratings (warm), and for pairs whose
   * user or item is known by its attributes alone (cold). Absent if no ranked pair is cold.
   */
  readonly warm?: RankedPart;
  readonly cold?: RankedPart;
  /** 95 % bootstrap intervals of the means, under the same names. */
  readonly intervals: Readonly<Record<string, Interval>>;
  /** The same metrics of rankings to compare with; none without pairs to exclude. */
  readonly baselines: RankingBaselines;
  /** Number of users in the means. */
  readonly users: number;
  /** Number of users that could be ranked; above `users` if `rankUsers` of them were drawn. */
  readonly availableUsers: number;
  /** Users and items of the test pairs that the model does not know. */
  readonly coldUsers: number;
  readonly coldItems: number;
  /** Number of all test pairs, and of those whose user or item the model does not know. */
  readonly pairs: number;
  readonly coldPairs: number;
  /** Test pairs that are not ranked: pairs that are also excluded, and repetitions of another test pair. */
  readonly leakedPairs: number;
  readonly repeatedPairs: number;
  /** Test pairs rated below `minRating`; they do not count as positives. */
  readonly irrelevantPairs: number;
  /** Excluded pairs with a user or item that the model does not know. */
  readonly unknownExcluded: number;
  /** Counts of the candidates by outcome, if candidates were given. */
  readonly candidates?: CandidateCounts;
  /** Warnings about the model; each was also sent as an event. */
  readonly warnings: readonly TrainingWarning[];
}

/**
 * Ranks, for each user of the test pairs, all items that the user has not seen, and measures the ranks of the
 * user's test items: full rankings (Krichene, Rendle 2020), or rankings of given candidates. Input: `user`,
 * `item` and, with a minimum rating, `rating`.
 */
export function rankingEvaluation(model: FactorModel, settings: RankingSettings): Sink<RankingEvaluation> {
  const { metrics, ks, coldPairs } = settings;
  return {
    name: 'evaluate-ranking',
    describe: () => ({ rank: model.rank, metrics, ks, coldPairs }),
    requiredColumns: () => undefined,
    consume: (input, ctx) => Holdings.within(ctx, (held) => evaluated(model, settings, input, held)),
  };
}

async function evaluated(
  model: FactorModel,
  settings: RankingSettings,
  input: BatchStream,
  ctx: ExecutionContext,
): Promise<RankingEvaluation> {
  const { metrics, ks, seed, resamples, baselines, coldPairs: policy } = settings;
  const chosen = chosenMetrics(metrics, ks);
  const { pairs, training, counts } = await testPairs(model, settings, input, ctx);
  const ranked = rankedOf(pairs);
  const own = await measureRankings(await ownRankings(pairs, ctx), ranked, chosen, training?.facts);
  const { values, means, users } = own.values;
  const intervals =
    resamples === 0 || users === 0
      ? []
      : bootstrapIntervals(values, means.length, means, { resamples, seed, confidence: 0.95 });
  const measured = training
    ? await measureBaselines(baselines, training, { pairs, ranked, chosen }, ctx)
    : {};
  const { popularity } = measured;
  const compared =
    popularity &&
    compareToPopularity({ metrics: own.metrics, popularity, users, training: settings.training });
  const verdict = await withHalfLife(compared, settings.training, settings.halfLifeToTry);
  // Pairs with an unknown user or item need no warning if they count as misses: then the metrics include them.
  const relevant = counts.pairs - counts.irrelevantPairs;
  const cold =
    policy === 'miss' || relevant === 0 ? [] : coldWarnings({ pairs: relevant, coldPairs: counts.coldPairs });
  for (const { code, text } of [...(verdict ? [verdict] : []), ...cold])
    ctx.events({ type: 'warning', code, text });
  return {
    metrics: own.metrics,
    ...partsOf(pairs, { ...ranked, places: own.places }, chosen.measures),
    intervals: Object.fromEntries(intervals.map((interval, i) => [chosen.measures[i].name, interval])),
    baselines: measured,
    users,
    ...counts,
    warnings: [...cold, ...(verdict ? [verdict] : [])],
  };
}

/** Warm and cold pairs, if there are cold ones. */
function partsOf(
  { counts }: RankedPairs,
  ranked: Ranked,
  measures: readonly NamedMeasure[],
): Pick<RankingEvaluation, 'warm' | 'cold'> {
  if (counts === undefined) return {};
  const measured = (wanted: boolean): RankedPart => {
    const part = partOf(ranked, (user, item) => isCold(counts, user, item) === wanted);
    const { means, users } = userValues(part, measures);
    const metrics = Object.fromEntries(measures.map(({ name }, at) => [name, means[at]]));
    return { metrics, users, pairs: part.positives.ratings };
  };
  const cold = measured(true);
  return cold.pairs === 0 ? {} : { warm: measured(false), cold };
}

/** The distinct ids of a column that a model does not know. */
class UnknownIds {
  readonly #column: 'user' | 'item';
  #table: KeyTable | undefined;

  constructor(column: 'user' | 'item') {
    this.#column = column;
  }

  get size(): number {
    return this.#table?.size ?? 0;
  }

  /** `codes`: positions of the batch's ids, UNKNOWN_KEY for unknown ones. */
  add(batch: RecordBatch, codes: Uint32Array): void {
    const rows: number[] = [];
    for (let i = 0; i < codes.length; i++) if (codes[i] === UNKNOWN_KEY) rows.push(i);
    if (rows.length === 0) return;
    const data = columnOf(batch, this.#column);
    const type = keyTypeOf(data.type, this.#column);
    this.#table ??= makeKeyTable(type);
    this.#table.add(takeKeys(keysFromData(data, type), rows), new Uint32Array(rows.length));
  }
}

/**
 * Reads the test items of the users to rank, the pairs that these users have seen, and the numbers of pairs
 * that were left out.
 */
async function testPairs(
  model: FactorModel,
  {
    minRating,
    coldPairs: policy,
    counts: rated,
    exclude,
    candidates: given,
    rankUsers,
    seed,
  }: RankingSettings,
  input: BatchStream,
  ctx: ExecutionContext,
) {
  let [pairCount, irrelevantPairs] = [0, 0];
  // Pairs rated below the minimum do not count as relevant.
  const relevantRows = async function* () {
    for await (const batch of input) {
      pairCount += batch.numRows;
      const ratings = batch.getChild('rating')?.data[0].values as Float32Array | undefined;
      const positions =
        minRating !== undefined && ratings
          ? Uint32Array.from({ length: batch.numRows }, (_, i) => i).filter((i) => ratings[i] >= minRating)
          : undefined;
      irrelevantPairs += positions ? batch.numRows - positions.length : 0;
      if (positions === undefined || positions.length === batch.numRows) yield batch;
      else if (positions.length > 0) yield takeRows(batch, positions);
    }
  };
  const [coldUsers, coldItems] = [new UnknownIds('user'), new UnknownIds('item')];
  // Number of pairs with unknown items of each known user.
  const unknownItems = new Int32Array(keyCount(model.users));
  const onCodes = (batch: RecordBatch, userCodes: Uint32Array, itemCodes: Uint32Array) => {
    coldUsers.add(batch, userCodes);
    coldItems.add(batch, itemCodes);
    for (let i = 0; i < userCodes.length; i++)
      if (userCodes[i] !== UNKNOWN_KEY && itemCodes[i] === UNKNOWN_KEY) unknownItems[userCodes[i]]++;
  };
  const relevant = batchStream(input.schema, relevantRows());
  const { users, items } = model;
  const { indexed, coldPairs } = await collectKnownPairs(relevant, users, items, ctx, onCodes);
  if (pairCount === 0) throw new DataError('there are no pairs to evaluate', { phase: 'evaluate' });
  const byUser = await sortByUser(indexed, 'keep', ctx);
  const excluded = await exclude?.(ctx);
  const { positives, leaked, repeated } = rankedTest(byUser, excluded?.block);
  if (leaked > 0) ctx.events({ type: 'warning', text: leakText(leaked) });
  const seen = excluded?.block;
  const missing = policy === 'miss' ? { positives: unknownItems, users: coldUsers.size } : undefined;
  const pairs: RankedPairs = { model, counts: rated, positives, seen, missing, lists: undefined };
  // Given candidates are ranked instead of all items.
  const listed = given && candidateLists(await given(ctx), { ...pairs, missing: missing?.positives });
  if (listed) reportCandidates(listed.counts, ctx);
  const own = listed && {
    ...pairs,
    positives: listed.positives,
    missing: missing && { ...missing, positives: listed.missing ?? missing.positives },
    lists: listed.lists,
  };
  const drawn = await drawnPairs(own ?? pairs, { most: rankUsers, seed }, ctx);
  const counts = {
    availableUsers: drawn.availableUsers,
    coldUsers: coldUsers.size,
    coldItems: coldItems.size,
    pairs: pairCount,
    coldPairs,
    leakedPairs: leaked,
    repeatedPairs: repeated,
    irrelevantPairs,
    unknownExcluded: excluded?.unknown ?? 0,
    ...(listed && { candidates: listed.counts }),
  };
  const training: BaselineTraining | undefined = excluded && {
    block: excluded.block,
    facts: itemFacts(excluded.block, keyCount(items), excluded.hasRatings),
  };
  return { pairs: drawn.pairs, training, counts };
}

function leakText(leaked: number): string {
  return `${formatCount(leaked)} test pairs are among the excluded ones too: test data has leaked into training. They are not ranked`;
}

/** The model's rankings of all items, or of the candidates. */
async function ownRankings(pairs: RankedPairs, ctx: ExecutionContext): Promise<Rankings> {
  const { model, positives, lists } = pairs;
  return lists === undefined
    ? modelRankings(model, pairs, ctx)
    : listedRankings(await listedScores(model, lists, ctx), {
        lists,
        positives,
        items: keyCount(model.items),
      });
}

/** The facts about the ranked pairs that the measures need besides the ranks themselves. */
function rankedOf({ model, positives, seen, missing, lists }: RankedPairs): Omit<Ranked, 'places'> {
  const items = keyCount(model.items);
  const excluded = lists
    ? Uint32Array.from(
        { length: lists.rows },
        (_, user) => items - lists.offsets[user + 1] + lists.offsets[user],
      )
    : seen && distinctItems(seen);
  return { positives, items, excluded, missing };
}

function reportCandidates(
  { coldPairs, usersWithout, idlePairs }: CandidateCounts,
  { events }: ExecutionContext,
): void {
  if (coldPairs > 0)
    events({
      type: 'warning',
      text: `${formatCount(coldPairs)} candidates have a user or an item that the model does not know, and are not ranked`,
    });
  if (usersWithout > 0)
    events({
      type: 'warning',
      text: `${formatCount(usersWithout)} users with test pairs have no candidate to rank them with, and are not measured`,
    });
  if (idlePairs > 0)
    events({
      type: 'note',
      text: `${formatCount(idlePairs)} candidates are of users without a known test pair`,
    });
}

type Interval = readonly [low: number, high: number];

/** Most users in one resample. */
const MOST_DRAWN = 10_000;

interface BootstrapOptions {
  readonly resamples: number;
  readonly seed: number;
  /** Share of the resamples inside an interval, such as 0.95. */
  readonly confidence: number;
}

/**
 * Percentile bootstrap intervals of the means of several columns (Efron 1979): each resample draws rows with
 * replacement, the same rows for all columns. `values`: rows x columns, row-major. To save time, a resample
 * of more than 10,000 rows draws only 10,000, and its deviation from the mean is multiplied by √(10,000 /
 * rows) (the m out of n bootstrap). The same seed gives the same intervals.
 */
function bootstrapIntervals(
  values: Float64Array,
  columns: number,
  means: Float64Array,
  { resamples, seed, confidence }: BootstrapOptions,
): Interval[] {
  const rows = values.length / columns;
  const drawn = Math.min(rows, MOST_DRAWN);
  const scale = Math.sqrt(drawn / rows);
  const deviations = Array.from({ length: columns }, () => new Float64Array(resamples));
  const sums = new Float64Array(columns);
  for (let b = 0; b < resamples; b++) {
    const random = new CounterRandom(seed, b);
    sums.fill(0);
    for (let i = 0; i < drawn; i++) {
      const at = columns * random.below(i, rows);
      for (let c = 0; c < columns; c++) sums[c] += values[at + c];
    }
    for (let c = 0; c < columns; c++) deviations[c][b] = scale * (sums[c] / drawn - means[c]);
  }
  const tail = (1 - confidence) / 2;
  return deviations.map((column, c) => {
    column.sort();
    return [means[c] + quantile(column, tail), means[c] + quantile(column, 1 - tail)];
  });
}

/** Quantile of sorted numbers, interpolated between the nearest two. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.min(sorted.length - 1, low + 1);
  return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}
