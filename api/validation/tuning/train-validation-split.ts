import { throwIfAborted, UsageError } from '../../../engine/errors.ts';
import { type EventSink, noEvents } from '../../../engine/events.ts';
import { counted } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { mix32 } from '../../../engine/random.ts';
import { compareToPopularity } from '../../../operators/evaluation/model-warnings.ts';
import { checkOptions, runOptionNames } from '../../check-options.ts';
import type { Dataset } from '../../dataset.ts';
import { pairsOf } from '../../found-columns.ts';
import { requireReplayable } from '../../replayable.ts';
import { requireDataset } from '../../require-dataset.ts';
import { requireErrors } from '../error-metrics.ts';
import type { Model } from '../../model.ts';
import type { RunOptions } from '../../run-session.ts';
import { dropKept, keptDataset } from '../../training/kept-ratings.ts';
import type { PlannedTrial } from './schedule.ts';
import { bestOf, Search } from './search.ts';
import { checkTuning, planTrials } from './plan-trials.ts';
import { errorBaselines, rankedBaselines } from './tuning-baselines.ts';
import type { TrialParams } from './search-space.ts';
import { isOwn, type Trial, type TunedEstimator, type TuningMetric } from './trial.ts';
import type { SearchStrategy, TrainValidationSplitOptions, TuneOptions, Tuning } from './tuning-options.ts';

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
    const kept = await this.#sets(ratings, validation, signal);
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
   * between trials.
   */
  async #sets(
    ratings: Dataset,
    validation: Dataset | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly train: Dataset; readonly validation: Dataset }> {
    const { user, item } = await pairsOf(ratings, this.#make(this.trials[0].params).columns, {
      ...ratings.session.context({ signal }),
      events: noEvents,
    });
    const [train, held] =
      validation === undefined
        ? ratings.randomSplit([1 - this.validationFraction, this.validationFraction], {
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
