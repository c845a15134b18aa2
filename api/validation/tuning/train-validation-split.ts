import { throwIfAborted, UsageError } from '../../../engine/errors.ts';
import { type EventSink, noEvents } from '../../../engine/events.ts';
import { counted } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { mix32 } from '../../../engine/random.ts';
import { compareToPopularity } from '../../../operators/evaluation/ranking/compare-to-popularity.ts';
import { checkOptions, checkSeed, runOptionNames, shown } from '../../check-options.ts';
import type { Dataset } from '../../dataset.ts';
import { pairsOf } from '../../found-columns.ts';
import { requireReplayable } from '../../replayable.ts';
import { requireDataset } from '../../require-dataset.ts';
import { checkRankUsers } from '../rank-users.ts';
import { dropKept, keptDataset } from '../../training/kept-ratings.ts';
import type { PlannedTrial } from './schedule.ts';
import { bestOf, Search } from './search.ts';
import { checkSpace, gridOf, randomTrials, type TrialParams } from './search-space.ts';
import { isOwn, type Trial, type TunedEstimator, tuningMetricOf, type TuningMetric } from './trial.ts';
import type { SearchStrategy, TrainValidationSplitOptions, TuneOptions, Tuning } from './tuning-options.ts';

const optionNames = [
  'estimator',
  'grid',
  'space',
  'search',
  'trials',
  'first',
  'metric',
  'validationFraction',
  'seed',
  'parallelism',
  'warmStart',
  'ranking',
  'rankUsers',
] as const;

/**
 * Compares combinations of parameters on one validation set, as Spark's class of this name does, over a grid,
 * at random, or by successive halving. Ratings are read, numbered and sorted once for all trials. No test set
 * is looked at: measure the best model on one of its own. Immutable; `fit` may run many times.
 *
 */
export class TrainValidationSplit {
  /** The trials in their order. */
  readonly trials: readonly PlannedTrial[];
  readonly metric: TuningMetric;
  readonly search: SearchStrategy;
  readonly validationFraction: number;
  readonly seed: number;
  readonly #options: TrainValidationSplitOptions;

  /** Makes every estimator, so that a parameter out of range throws UsageError before anything is trained. */
  constructor(options: TrainValidationSplitOptions) {
    checkOptions('TrainValidationSplit', options, optionNames, '{ estimator, grid }');
    const {
      estimator,
      grid,
      space,
      metric = 'rmse',
      validationFraction = 0.1,
      seed = 0,
      trials = 30,
      first = [],
      parallelism = 1,
    } = options;
    if (typeof estimator !== 'function')
      throw new UsageError(
        `estimator must be a function such as (params) => new ALS(params), got ${shown(estimator)}`,
      );
    if ((grid === undefined) === (space === undefined))
      throw new UsageError('TrainValidationSplit takes a grid, or a space', {
        advice: "For example { space: { rank: [8, 16], regParam: { from: 0.01, to: 0.1, scale: 'log' } } }",
      });
    if (!Number.isInteger(trials) || trials < 1)
      throw new UsageError(`trials must be a whole number of 1 or more, got ${shown(trials)}`);
    if (!Number.isInteger(parallelism) || parallelism < 1)
      throw new UsageError(`parallelism must be a whole number of 1 or more, got ${shown(parallelism)}`);
    if (!(validationFraction > 0 && validationFraction < 1))
      throw new UsageError(
        `validationFraction must be a number between 0 and 1, got ${shown(validationFraction)}`,
      );
    checkSeed(seed);
    checkRankUsers(options);
    tuningMetricOf(metric);
    if (space !== undefined) checkSpace(space);
    const lists = space === undefined || Object.values(space).every((values) => Array.isArray(values));
    const { search = lists ? 'grid' : 'random' } = options;
    if (!['grid', 'random', 'halving'].includes(search))
      throw new UsageError(`search must be grid, random or halving, got ${shown(search)}`);
    if (grid !== undefined && search === 'random')
      throw new UsageError('search random takes a space', { advice: 'Give a space, or leave search out' });
    const drawn = () => [...first, ...randomTrials(space ?? {}, trials, seed)].slice(0, trials);
    const params =
      grid ??
      (search === 'grid' || (search === 'halving' && lists && options.trials === undefined)
        ? gridOf(space ?? {})
        : drawn());
    if (params.length === 0) throw new UsageError('there is no combination of parameters to try');
    for (const one of params) estimator(one);
    this.trials = params.map((one, at) => ({ number: at + 1, params: one }));
    this.metric = metric;
    this.search = search;
    this.validationFraction = validationFraction;
    this.seed = seed;
    this.#options = options;
  }

  /**
   * Runs the trials, then trains with the best parameters. Events: a phase 'tune' counted in trials, a note
   * for each, and all of the last fit's. A trial that diverges, does not fit, or has no value of the metric
   * is marked and the others go on; where all failed, the error of the first is thrown. A fault of the
   * ratings themselves is thrown at once.
   *
   */
  async fit(ratings: Dataset, options: TuneOptions = {}): Promise<Tuning> {
    requireDataset(ratings, 'TrainValidationSplit.fit');
    checkOptions('TrainValidationSplit.fit', options, ['validation', 'onTrial', 'done', ...runOptionNames]);
    const { signal, onEvent = noEvents, validation } = options;
    if (validation !== undefined)
      requireDataset(validation, 'the option validation of TrainValidationSplit.fit');
    requireReplayable(ratings, 'tuning');
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
    const kept = { train: keptDataset(train, this.#options.parallelism), validation: keptDataset(held) };
    const search = new Search(this, { ...options, onEvent }, kept, this.#options);
    const trials = await search.trials();
    throwIfAborted(signal, 'tune');
    // The last fit loads all ratings, and needs the room.
    for (const dataset of Object.values(kept)) dropKept(dataset);
    if (search.failure !== undefined && trials.every(({ failure }) => failure !== undefined))
      throw search.failure;
    const best = bestOf(trials, this.metric);
    const { baselines, value } = best;
    if (this.metric === 'rmse' && baselines && value >= baselines.dampedMeans.rmse) {
      onEvent({
        type: 'warning',
        code: 'no-better-than-means',
        text: `no trial has a lower RMSE than damped means of items and users, ${baselines.dampedMeans.rmse.toFixed(4)}. Search other values: larger regParam, smaller rank`,
      });
    }
    for (const { code, text } of best.warnings ?? [])
      onEvent({ type: 'warning', code, text: `the best trial, ${best.number}: ${text}` });
    warnOfPopularity(best, onEvent);
    // Without validation ratings nothing ends early: the model has the iterations of the best.
    const last = endedEarlier(best) ? { maxIter: best.bestIteration } : {};
    if (endedEarlier(best))
      onEvent({
        type: 'note',
        text: `the last training has ${counted(best.bestIteration, 'iteration')}, after which trial ${best.number} was best; it ran ${best.iterations}`,
      });
    const final = this.#make({
      ...best.params,
      earlyStop: undefined,
      earlyStopMetric: undefined,
      targetRmse: undefined,
      ...last,
    });
    const model = await final.fit(ratings, {
      signal,
      onEvent,
      ...(isOwn(final) ? { continued: { tuning: evidenceOf(this, best, trials) } } : {}),
    });
    return { best, trials, model };
  }

  /** The estimator of a combination. */
  #make(params: TrialParams): TunedEstimator {
    return this.#options.estimator(params);
  }
}

/**
 * True where the value of the trial is of an earlier iteration than its last, which the last training ends
 * with.
 */
function endedEarlier({ warm, bestIteration, iterations }: Trial): boolean {
  return warm !== true && bestIteration < iterations;
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
 * The seed of the split: ratings that were split by the same seed before would else be split into all and
 * none.
 */
export function validationSeed(seed: number): number {
  return mix32(seed, VALIDATION_STREAM);
}

const VALIDATION_STREAM = 0x7a11da7e;

/** The facts about a search that a model is saved with. */
function evidenceOf(
  { metric, search, seed }: TrainValidationSplit,
  { number, value }: Trial,
  trials: readonly Trial[],
): JsonObject {
  return {
    metric,
    search,
    seed,
    best: number,
    value,
    trials: trials.map(
      ({ seconds: _seconds, baselines: _baselines, ranking: _ranking, ...trial }) =>
        JSON.parse(JSON.stringify(trial)) as JsonObject,
    ),
  };
}
