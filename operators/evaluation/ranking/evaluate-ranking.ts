import { DataError } from '../../../engine/errors.ts';
import { formatCount } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import type { Sink } from '../../../engine/stream/operator.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { collectKnownPairs } from '../../ratings/ids/known-pairs.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { buildUserBlock } from '../../ratings/rating-blocks.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import { bootstrapIntervals, type Interval } from './bootstrap.ts';
import { type ItemFacts, itemFacts, orderOf, placesByOrder } from './item-order.ts';
import { coverage, type ListCounts, listCounts, listCountsByOrder, novelty } from './list-counts.ts';
import { PositiveRanks } from './rank-positives.ts';
import { distinctItems, rankedTest, userValues } from './ranked-test.ts';
import { depthOf, measuresOf, type NamedMeasure, type RankingMetric } from './ranking-metrics.ts';
import { ColdPairs, TestPairs } from './test-pairs.ts';

/** Pairs that are not ranked: a block over the users and items of the model. */
export interface ExcludedPairs {
  readonly block: RatingBlock;
  readonly hasRatings: boolean;
  /** Pairs of users or items that the model does not know. */
  readonly unknown: number;
}

export interface RankingSettings {
  readonly metrics: readonly RankingMetric[];
  readonly ks: readonly number[];
  readonly minRating?: number;
  readonly coldPairs: 'drop' | 'miss';
  readonly baselines: boolean;
  readonly resamples: number;
  readonly seed: number;
  /** The pairs seen in training, read before the test pairs are ranked. */
  readonly exclude?: (ctx: ExecutionContext) => Promise<ExcludedPairs>;
}

/** Metrics by name: "ndcg@20", "mrr". */
export type MetricValues = Readonly<Record<string, number>>;

export interface RankingEvaluation {
  /** Means over users; NaN where no user is left. */
  readonly metrics: MetricValues;
  /** 95 % bootstrap intervals of the means, by the same names. */
  readonly intervals: Readonly<Record<string, Interval>>;
  /** The metrics of rankings that are the same for all users: by the number of users of an item, and by its damped mean rating. */
  readonly baselines: { readonly popularity?: MetricValues; readonly itemMean?: MetricValues };
  /** Users over whom the means are taken. */
  readonly users: number;
  /** Users of the test pairs that the model does not know. */
  readonly coldUsers: number;
  /** Test pairs in all, and those whose user or item the model does not know. */
  readonly pairs: number;
  readonly coldPairs: number;
  /** Test pairs that are among the excluded ones too, and repeat another: neither is ranked. */
  readonly leakedPairs: number;
  readonly repeatedPairs: number;
  /** Test pairs rated below `minRating`: no positives. */
  readonly irrelevantPairs: number;
  /** Excluded pairs with a user or an item that the model does not know. */
  readonly unknownExcluded: number;
}

/**
 * Ranks, for each user of the test pairs, all items that the user has not seen, and measures where the user's test items stand. Full
 * rankings, no sampled candidates (Krichene, Rendle 2020). Input: `user`, `item` and, where there is a least rating, `rating`.
 */
export class EvaluateRanking implements Sink<RankingEvaluation> {
  readonly name = 'evaluate-ranking';
  readonly #model: FactorModel;
  readonly #settings: RankingSettings;

  constructor(model: FactorModel, settings: RankingSettings) {
    this.#model = model;
    this.#settings = settings;
  }

  describe(): JsonObject {
    const { metrics, ks, coldPairs } = this.#settings;
    return { rank: this.#model.rank, metrics, ks, coldPairs };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  consume(input: BatchStream, ctx: ExecutionContext): Promise<RankingEvaluation> {
    return Holdings.within(ctx, (held) => this.#evaluate(input, held));
  }

  async #evaluate(input: BatchStream, ctx: ExecutionContext): Promise<RankingEvaluation> {
    const { metrics, ks, seed, resamples, baselines } = this.#settings;
    const model = this.#model;
    const { positives, missing, excluded, counts } = await this.#read(input, ctx);
    const seen = excluded?.block;
    const items = keyCount(model.items);
    const measures = measuresOf(metrics, ks);
    const lists = metrics.some((metric) => metric === 'coverage' || metric === 'novelty');
    const facts = excluded && itemFacts(excluded.block, items, excluded.hasRatings);
    const ranked = { positives, items, excluded: seen && distinctItems(seen), missing };
    const places = measures.length > 0 ? await new PositiveRanks(positives, seen, ctx).places(model, depthOf(metrics, ks)) : new Uint32Array(positives.ratings);
    const own = userValues({ ...ranked, places }, measures);
    const ofLists = lists ? this.#listMetrics(await listCounts(model, positives, seen, ks, ctx), facts, positives.rows) : {};
    const intervals = resamples === 0 || own.users === 0 ? [] : bootstrapIntervals(own.values, measures.length, own.means, { resamples, seed, confidence: 0.95 });
    const baseline = async (scores: ArrayLike<number>): Promise<MetricValues> => {
      const order = orderOf(scores);
      const { means } = userValues({ ...ranked, places: await placesByOrder(order, positives, seen, ctx.signal) }, measures);
      return { ...named(measures, means), ...(lists ? this.#listMetrics(listCountsByOrder(order, positives, seen, ks), facts, positives.rows) : {}) };
    };
    const wanted = baselines ? facts : undefined;
    return {
      metrics: { ...named(measures, own.means), ...ofLists },
      intervals: Object.fromEntries(intervals.map((interval, i) => [measures[i].name, interval])),
      baselines: { ...(wanted && { popularity: await baseline(wanted.counts) }), ...(wanted?.means && { itemMean: await baseline(wanted.means) }) },
      users: own.users,
      ...counts,
    };
  }

  /** The positives, the excluded pairs, and what was left out. */
  async #read(input: BatchStream, ctx: ExecutionContext) {
    const { minRating, coldPairs: policy, exclude } = this.#settings;
    const { users, items } = this.#model;
    const [cold, test] = [new ColdPairs(this.#model), new TestPairs(minRating)];
    const { indexed, coldPairs } = await collectKnownPairs(test.relevant(input), users, items, ctx, cold.see);
    if (test.pairs === 0) throw new DataError('there are no pairs to evaluate', { phase: 'evaluate' });
    const { byUser } = await buildUserBlock(indexed, 'keep', ctx);
    const excluded = await exclude?.(ctx);
    const { positives, leaked, repeated } = rankedTest(byUser, excluded?.block);
    if (leaked > 0) ctx.events({ type: 'warning', text: `${formatCount(leaked)} test pairs are among the excluded ones too: test data has leaked into training. They are not ranked` });
    const missing = policy === 'miss' ? { positives: cold.ofUsers, users: cold.userCount } : undefined;
    const counts = { coldUsers: cold.userCount, pairs: test.pairs, coldPairs, leakedPairs: leaked, repeatedPairs: repeated, irrelevantPairs: test.irrelevant, unknownExcluded: excluded?.unknown ?? 0 };
    return { positives, missing, excluded, counts };
  }

  /** Novelty needs the counts of excluded pairs. */
  #listMetrics(counts: ListCounts, facts: ItemFacts | undefined, users: number): MetricValues {
    const { metrics, ks } = this.#settings;
    const covered = metrics.includes('coverage') ? counts.map((own, i) => [`coverage@${ks[i]}`, coverage(own)] as const) : [];
    const novel = metrics.includes('novelty') && facts ? counts.map((own, i) => [`novelty@${ks[i]}`, novelty(own, facts.counts, users)] as const) : [];
    return Object.fromEntries([...covered, ...novel]);
  }
}

function named(measures: readonly NamedMeasure[], means: Float64Array): MetricValues {
  return Object.fromEntries(measures.map(({ name }, i) => [name, means[i]]));
}
