import { CapacityError, throwIfAborted, UsageError } from '../../../engine/errors.ts';
import { type EventSink, noEvents } from '../../../engine/events.ts';
import { counted } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { mix32 } from '../../../engine/random.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { rootSource } from '../../../engine/stream/logical-plan.ts';
import { compareToPopularity } from '../../../operators/evaluation/model-warnings.ts';
import { validationBaselines } from '../../../operators/evaluation/ranking/measure-baselines.ts';
import type { RankingBaseline } from '../../../operators/evaluation/ranking/ranking-metrics.ts';
import { keepKnown } from '../../../operators/ratings/ids/known-pairs.ts';
import { usualNames } from '../../../operators/ratings/rows/column-names.ts';
import type { BadRowPolicy } from '../../../operators/ratings/rows/select-ratings.ts';
import { sortByUser } from '../../../operators/ratings/sort-ratings.ts';
import { checkOptions, runOptionNames } from '../../check-options.ts';
import { type Dataset, requireDataset } from '../../dataset.ts';
import { pairsOf } from '../../found-columns.ts';
import type { Model } from '../../model.ts';
import { RatingInput } from '../../rating-input.ts';
import { requireReplayable } from '../../run-rows.ts';
import type { RunOptions } from '../../run-session.ts';
import type { ALS } from '../../training/als.ts';
import { dropKept, keptDataset } from '../../training/kept-ratings.ts';
import { foundSets } from '../../training/run-fit.ts';
import { unratedAsOnes } from '../../training/unrated-as-ones.ts';
import { isError, requireErrors } from '../error-metrics.ts';
import { chosenBaselines } from '../evaluate-ranking.ts';
import { mostRanked } from '../ranking-options.ts';
import { checkSpace, gridOf, randomTrials, type TrialParams } from './search-space.ts';
import { bestOf, type PlannedTrial, Search } from './search.ts';
import {
  isOwn,
  requireMaker,
  type Trial,
  type TrialRatings,
  type TunedEstimator,
  type TuningMetric,
  tuningMetricOf,
} from './trial.ts';
import type {
  SearchStrategy,
  TrainValidationSplitOptions,
  TuneOptions,
  Tuning,
  TuningBaselines,
} from './tuning-options.ts';
import { tuningParams } from '../../option-params.ts';

/**
 * Compares combinations of parameters on one validation set, like Spark's class of this name: over a grid, at
 * random, or by successive halving. Ratings are read, numbered and sorted once for all trials. It does not
 * use a test set: measure the best model on your own. Immutable; `fit` may run many times.
 */
export class TrainValidationSplit {
  /** The trials in order. */
  readonly trials: readonly PlannedTrial[];
  readonly metric: TuningMetric;
  readonly search: SearchStrategy;
  readonly validationFraction: number;
  readonly seed: number;
  readonly #options: TrainValidationSplitOptions;

  /** Creates every estimator, so that a parameter out of range throws UsageError before any training. */
  constructor(options: TrainValidationSplitOptions) {
    checkTuning(options);
    const { estimator, metric = 'rmse', validationFraction = 0.1, seed = 0 } = options;
    const { search, params } = planTrials(options);
    if (params.length === 0) throw new UsageError('there is no combination of parameters to try');
    for (const one of params) requireErrors(metric, estimator(one));
    this.trials = params.map((one, at) => ({ number: at + 1, params: one }));
    this.metric = metric;
    this.search = search;
    this.validationFraction = validationFraction;
    this.seed = seed;
    this.#options = options;
  }

  /**
   * Runs the trials, then trains with the best parameters. Events: a phase 'tune' counted in trials, a note
   * for each, and all events of the last fit. A trial that diverges, does not fit, or has no value of the
   * metric is marked and the others continue; if all failed, the first error is thrown. A fault of the
   * ratings themselves is thrown at once.
   */
  async fit(ratings: Dataset, options: TuneOptions = {}): Promise<Tuning> {
    requireDataset(ratings, 'TrainValidationSplit.fit');
    checkOptions('TrainValidationSplit.fit', options, ['validation', 'onTrial', 'done', ...runOptionNames]);
    const { signal, onEvent = noEvents, validation } = options;
    if (validation !== undefined)
      requireDataset(validation, 'the option validation of TrainValidationSplit.fit');
    requireReplayable(ratings, 'tuning');
    const kept = await this.#sets(ratings, validation, { signal, onEvent });
    const first = this.#make(this.trials[0].params);
    const ranked = await rankedBaselines(this.metric, kept, first, this.#options, { signal, onEvent });
    const search = new Search(this, { ...options, onEvent }, kept, this.#options);
    const trials = await search.trials();
    throwIfAborted(signal, 'tune');
    // The final fit loads all ratings and needs the memory of the cached ones.
    for (const dataset of Object.values(kept)) dropKept(dataset);
    if (search.failure !== undefined && trials.every(({ failure }) => failure !== undefined))
      throw search.failure;
    const best = withKeptIterations(bestOf(trials, this.metric));
    reportBest(best, this.metric, onEvent);
    const baselines = { ...ranked, ...errorBaselines(this.metric, best) };
    const model = await this.#trainBest(ratings, { best, trials, baselines }, { signal, onEvent });
    return { best, trials, baselines, model };
  }

  /**
   * The ratings on which trials are trained, and the ratings on which they are measured. Both stay loaded
   * between trials. A half-life says nothing of ratings drawn at random: with one, the latest are measured.
   */
  async #sets(
    ratings: Dataset,
    validation: Dataset | undefined,
    { signal, onEvent }: RunOptions,
  ): Promise<{ readonly train: Dataset; readonly validation: Dataset }> {
    const weights = [1 - this.validationFraction, this.validationFraction] as const;
    const timed = this.trials.map(({ params }) => this.#make(params) as Partial<ALS>).find(hasHalfLife);
    if (validation === undefined && timed !== undefined) {
      const own = ratings.columns.timestamp === undefined ? timed.columns?.timestamp : undefined;
      const timestampCol = own === usualNames.timestamp ? undefined : own;
      const [train, latest] = await ratings.timeSplit(weights, { signal, onEvent, timestampCol });
      return { train: keptDataset(train, this.#options.parallelism), validation: keptDataset(latest) };
    }
    const { user, item } = await pairsOf(ratings, this.#make(this.trials[0].params).columns, {
      ...ratings.session.context({ signal }),
      events: noEvents,
    });
    const [train, held] =
      validation === undefined
        ? ratings.randomSplit(weights, {
            seed: validationSeed(this.seed),
            userCol: user,
            itemCol: item,
          })
        : [ratings, validation];
    return { train: keptDataset(train, this.#options.parallelism), validation: keptDataset(held) };
  }

  /**
   * Trains the final model on all ratings. No validation ratings are left by which it could stop early, so it
   * uses the best trial's number of iterations.
   */
  async #trainBest(ratings: Dataset, found: Omit<Tuning, 'model'>, run: RunOptions): Promise<Model> {
    const { best } = found;
    const final = this.#make({
      ...best.params,
      earlyStop: undefined,
      earlyStopMetric: undefined,
      targetRmse: undefined,
    });
    return final.fit(ratings, {
      ...run,
      ...(isOwn(final) ? { continued: { tuning: evidenceOf(this, found) } } : {}),
    });
  }

  /** The estimator of a combination. */
  #make(params: TrialParams): TunedEstimator {
    return this.#options.estimator(params);
  }
}

function hasHalfLife({ params }: Partial<ALS>): boolean {
  return (params?.halfLife ?? 'none') !== 'none';
}

/**
 * True if the trial's value is from an iteration before its last; the final training stops at that iteration.
 */
function endedEarlier({ warm, bestIteration, iterations }: Trial): boolean {
  return warm !== true && bestIteration < iterations;
}

/** The trial with the number of iterations that the final training has. */
function withKeptIterations(trial: Trial): Trial {
  return endedEarlier(trial)
    ? { ...trial, params: { ...trial.params, maxIter: trial.bestIteration } }
    : trial;
}

/** Warns about the best trial, and reports the iterations of the final training if they are fewer. */
function reportBest(best: Trial, metric: TuningMetric, onEvent: EventSink): void {
  const { baselines, value } = best;
  if (metric === 'rmse' && baselines && value >= baselines.dampedMeans.rmse) {
    onEvent({
      type: 'warning',
      code: 'no-better-than-means',
      text: `no trial has a lower RMSE than damped means of items and users, ${baselines.dampedMeans.rmse.toFixed(4)}. Search other values: larger regParam, smaller rank`,
    });
  }
  for (const { code, text } of best.warnings ?? [])
    onEvent({ type: 'warning', code, text: `the best trial, ${best.number}: ${text}` });
  warnOfPopularity(best, onEvent);
  if (endedEarlier(best))
    onEvent({
      type: 'note',
      text: `the last training has ${counted(best.bestIteration, 'iteration')}, after which trial ${best.number} was best; it ran ${best.iterations}`,
    });
}

function warnOfPopularity({ ranking }: Trial, onEvent: EventSink): void {
  if (ranking === undefined || compareToPopularity(ranking) === undefined) return;
  const [own, popular] = [ranking.metrics, ranking.popularity].map((values) => values['ndcg@10'].toFixed(4));
  onEvent({
    type: 'warning',
    code: 'no-better-than-popularity',
    text: `the best trial ranks no better than popularity, which is the same for all users: ndcg@10 ${own} and ${popular}. Search other values: larger regParam, another alpha, or by the metric ndcg@10`,
  });
}

/**
 * The seed of the split into training and validation ratings. It differs from the user's seed: if the user
 * has already split the ratings by the same seed, they would all be in one part.
 */
export function validationSeed(seed: number): number {
  return mix32(seed, VALIDATION_STREAM);
}

const VALIDATION_STREAM = 0x7a11da7e;

/** Facts about a search that a model is saved with. */
function evidenceOf(
  { metric, search, seed }: TrainValidationSplit,
  { best: { number, value }, trials, baselines }: Omit<Tuning, 'model'>,
): JsonObject {
  return {
    metric,
    search,
    seed,
    best: number,
    value,
    baselines: { ...baselines },
    trials: trials.map(
      ({ seconds: _seconds, baselines: _baselines, ranking: _ranking, ...trial }) =>
        JSON.parse(JSON.stringify(trial)) as JsonObject,
    ),
  };
}

const optionNames = ['estimator', 'grid', 'space', 'first', 'metric', 'baselines'] as const;

/** Throws UsageError for an option that is unknown, missing or out of range. */
function checkTuning(options: TrainValidationSplitOptions): void {
  checkOptions('TrainValidationSplit', options, optionNames, '{ estimator, grid }', tuningParams);
  const { estimator, grid, space, metric = 'rmse' } = options;
  requireMaker(estimator);
  if ((grid === undefined) === (space === undefined))
    throw new UsageError('TrainValidationSplit takes a grid, or a space', {
      advice: "For example { space: { rank: [8, 16], regParam: { from: 0.01, to: 0.1, scale: 'log' } } }",
    });
  checkBaselines(tuningMetricOf(metric), options.baselines);
  if (space !== undefined) checkSpace(space);
}

function checkBaselines(metric: TuningMetric, baselines: TrainValidationSplitOptions['baselines']): void {
  chosenBaselines(baselines);
  if (isError(metric) && Array.isArray(baselines))
    throw new UsageError(`baselines such as popularity are rankings, and the metric is ${metric}`, {
      advice: 'Leave the option baselines out, or compare by a ranking metric such as ndcg@20',
    });
}

/**
 * The strategy of a search and its combinations in order. Throws UsageError if the options contradict each
 * other.
 */
function planTrials({
  grid,
  space = {},
  trials,
  seed = 0,
  first = [],
  ...options
}: TrainValidationSplitOptions): {
  readonly search: SearchStrategy;
  readonly params: readonly TrialParams[];
} {
  const lists = Object.values(space).every((values) => Array.isArray(values));
  const { search = lists ? 'grid' : 'random' } = options;
  if (grid !== undefined && search === 'random')
    throw new UsageError('search random takes a space', { advice: 'Give a space, or leave search out' });
  if (grid !== undefined) return { search, params: grid };
  const all = search === 'grid' || (search === 'halving' && lists && trials === undefined);
  const most = trials ?? tuningParams.trials.fallback;
  const params = all ? gridOf(space) : [...first, ...randomTrials(space, most, seed)].slice(0, most);
  return { search, params };
}

/** Settings of an estimator of this library that decide which pairs are ranked. */
interface OwnSettings {
  readonly columns: { readonly user: string; readonly item: string; readonly rating?: string };
  readonly onBadRows?: BadRowPolicy;
  readonly params?: { readonly seed?: number; readonly implicitPrefs?: boolean };
}

/** Values of a ranking metric by baselines, on the pairs and users that trials are measured on. */
async function rankedBaselines(
  metric: TuningMetric,
  sets: TrialRatings,
  estimator: TunedEstimator,
  options: Pick<TrainValidationSplitOptions, 'baselines' | 'rankUsers'>,
  run: RunOptions & { readonly onEvent: EventSink },
): Promise<TuningBaselines> {
  const baselines = chosenBaselines(options.baselines);
  if (isError(metric) || baselines.length === 0) return {};
  // The pairs are read once more than trials read them.
  if (options.baselines !== undefined) requireReplayable(sets.validation, 'baselines');
  else if (!rootSource(sets.validation.plan).replayable) return {};
  const work = (ctx: ExecutionContext) =>
    measure(metric, sets, { estimator, baselines, rankUsers: mostRanked(options) }, ctx);
  try {
    const found = await Holdings.within(
      sets.train.session.context({ ...run, onEvent: phasesTo(run.onEvent) }),
      work,
    );
    for (const [key, value] of Object.entries(found))
      run.onEvent({ type: 'note', text: `baseline ${nameOf(key)}: ${metric} ${value.toFixed(4)}` });
    return found;
  } catch (error) {
    // Default baselines must not end a search.
    if (options.baselines !== undefined || !(error instanceof CapacityError)) throw error;
    run.onEvent({ type: 'warning', text: `the baselines were not measured: ${error.summary}` });
    return {};
  }
}

/** The baselines of an error metric: of a trial, since all trials have the same ones. */
function errorBaselines(metric: TuningMetric, { baselines }: Trial): TuningBaselines {
  return isError(metric) && baselines !== undefined
    ? { mean: baselines.mean[metric], dampedMeans: baselines.dampedMeans[metric] }
    : {};
}

async function measure(
  metric: TuningMetric,
  { train, validation }: TrialRatings,
  {
    estimator,
    baselines,
    rankUsers,
  }: {
    readonly estimator: TunedEstimator;
    readonly baselines: readonly RankingBaseline[];
    readonly rankUsers: number;
  },
  ctx: ExecutionContext,
): Promise<TuningBaselines> {
  const { columns, onBadRows, params = {} }: OwnSettings = estimator;
  const input = new RatingInput({ ...(onBadRows && { onBadRows }) }, columns);
  let hasRatings = true;
  const sets = await foundSets(input, { ratings: train, validation }, ctx, async (dataset) => {
    if (params.implicitPrefs !== true) return dataset;
    const rated = await unratedAsOnes(dataset, input.columnsOf(dataset).rating, ctx);
    if (rated.plan !== dataset.plan) hasRatings = false;
    return rated;
  });
  const indexed = await input.index(sets.ratings, sets.validation, ctx);
  const { users, items } = indexed;
  const known = await keepKnown(await input.readPairs(sets.validation ?? validation, ctx), indexed, ctx);
  // A pair that is repeated becomes one pair with the mean of its ratings, as in evaluateRanking.
  const pairs = {
    users,
    items,
    train: await sortByUser(indexed, 'mean', ctx),
    test: await sortByUser(known.indexed, 'keep', ctx),
    hasRatings,
  };
  const found = await validationBaselines(
    metric,
    baselines,
    pairs,
    { rankUsers, seed: params.seed ?? 0 },
    ctx,
  );
  return Object.fromEntries(Object.entries(found).filter(([, value]) => Number.isFinite(value)));
}

/** The name that the option has for a member: item-mean for itemMean. */
function nameOf(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Passes only the phases of slow baselines on: what is read and warned of, trials report. */
function phasesTo(onEvent: EventSink): EventSink {
  return (event) => {
    if ('phase' in event && (event.phase === 'item-knn' || event.phase === 'ease')) onEvent(event);
  };
}
