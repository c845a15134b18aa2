import { DataError, throwIfAborted, UsageError } from '../../../engine/errors.ts';
import { noEvents, type ProgressEvent } from '../../../engine/events.ts';
import { startPhase } from '../../../engine/phase.ts';
import type { AlsStart } from '../../../operators/als/bind/als-data.ts';
import { counted } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { mix32 } from '../../../engine/random.ts';
import { parseMetric } from '../../../operators/evaluation/ranking/ranking-metrics.ts';
import { checkOptions, checkSeed, runOptionNames, shown } from '../../check-options.ts';
import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import { requireReplayable } from '../../replayable.ts';
import { requireDataset } from '../../require-dataset.ts';
import type { RunOptions } from '../../session.ts';
import { ALS } from '../../training/als.ts';
import { keptDataset } from '../../training/kept-ratings.ts';
import { chainsOf, type PlannedTrial, rungsOf, warmIterations } from './schedule.ts';
import { checkSpace, gridOf, randomTrials, type SearchSpace, type TrialParams } from './search-space.ts';
import { isError, isOwn, type RanTrial, runTrial, type Trial, type TrialRatings, type TunedEstimator } from './trial.ts';

export type SearchStrategy = 'grid' | 'random' | 'halving';

export interface TrainValidationSplitOptions {
  /** Makes the estimator of one combination of parameters: (params) => new ALS(params). */
  readonly estimator: (params: TrialParams) => TunedEstimator;
  /** The combinations to compare, or the values of each parameter. */
  readonly grid?: readonly TrialParams[];
  readonly space?: SearchSpace;
  /** `grid`: all combinations; `random`: `trials` of them; `halving`: the same, of which a third goes on at a time. Default: `grid` for lists alone, else `random`. */
  readonly search?: SearchStrategy;
  /** Trials of a search at random; default 30. */
  readonly trials?: number;
  /** Combinations that come before those at random, and count among the trials: the defaults, say. */
  readonly first?: readonly TrialParams[];
  /** 'rmse' (default), 'mae', or a ranking metric such as 'ndcg@20', which is to be large. */
  readonly metric?: string;
  /** The part of the ratings that trials are measured on; default 0.1. */
  readonly validationFraction?: number;
  /** Seed of the split and of a search at random; default 0. */
  readonly seed?: number;
  /** Trials at the same time; default 1, since each uses all workers already. */
  readonly parallelism?: number;
  /**
   * ALS: of trials that differ in λ alone, each after the first begins with the factors of the larger λ before it, and takes half the iterations.
   * Faster; values of small λ come out a little better than of a fit of their own. Default false.
   */
  readonly warmStart?: boolean;
}

export interface TuneOptions extends RunOptions {
  /** Ratings to measure trials on, in the place of a part of those given. */
  readonly validation?: Dataset;
  /** Told of each trial that ended. */
  readonly onTrial?: (trial: Trial) => void | Promise<void>;
  /** Trials of an earlier run of the same search on the same ratings, which are not run again. */
  readonly done?: readonly Trial[];
}

export interface Tuning {
  readonly best: Trial;
  /** In the order of the search. */
  readonly trials: readonly Trial[];
  /** Trained with the best parameters: on all ratings given, those of the validation part among them. */
  readonly model: Model;
}

const optionNames = ['estimator', 'grid', 'space', 'search', 'trials', 'first', 'metric', 'validationFraction', 'seed', 'parallelism', 'warmStart'] as const;

/**
 * Compares combinations of parameters on one validation set, as Spark's class of this name does, over a grid, at random, or by successive
 * halving. Ratings are read, numbered and sorted once for all trials. No test set is looked at: measure the best model on one of its own.
 * Immutable; `fit` may run many times.
 */
export class TrainValidationSplit {
  /** The trials in their order. */
  readonly trials: readonly PlannedTrial[];
  readonly metric: string;
  readonly search: SearchStrategy;
  readonly validationFraction: number;
  readonly seed: number;
  readonly #options: TrainValidationSplitOptions;

  /** Makes every estimator, so that a parameter out of range throws UsageError before anything is trained. */
  constructor(options: TrainValidationSplitOptions) {
    checkOptions('TrainValidationSplit', options, optionNames, '{ estimator, grid }');
    const { estimator, grid, space, metric = 'rmse', validationFraction = 0.1, seed = 0, trials = 30, first = [], parallelism = 1 } = options;
    if (typeof estimator !== 'function') throw new UsageError(`estimator must be a function such as (params) => new ALS(params), got ${shown(estimator)}`);
    if ((grid === undefined) === (space === undefined)) throw new UsageError('TrainValidationSplit takes a grid, or a space', { advice: "For example { space: { rank: [8, 16], regParam: { from: 0.01, to: 0.1, scale: 'log' } } }" });
    if (!Number.isInteger(trials) || trials < 1) throw new UsageError(`trials must be a whole number of 1 or more, got ${shown(trials)}`);
    if (!Number.isInteger(parallelism) || parallelism < 1) throw new UsageError(`parallelism must be a whole number of 1 or more, got ${shown(parallelism)}`);
    if (!(validationFraction > 0 && validationFraction < 1)) throw new UsageError(`validationFraction must be a number between 0 and 1, got ${shown(validationFraction)}`);
    checkSeed(seed);
    if (!isError(metric)) parseMetric(metric, 'metric');
    if (space !== undefined) checkSpace(space);
    const lists = space === undefined || Object.values(space).every((values) => Array.isArray(values));
    const { search = lists ? 'grid' : 'random' } = options;
    if (!['grid', 'random', 'halving'].includes(search)) throw new UsageError(`search must be grid, random or halving, got ${shown(search)}`);
    if (grid !== undefined && search === 'random') throw new UsageError('search random takes a space', { advice: 'Give a space, or leave search out' });
    const drawn = () => [...first, ...randomTrials(space ?? {}, trials, seed)].slice(0, trials);
    const params = grid ?? (search === 'grid' || (search === 'halving' && lists && options.trials === undefined) ? gridOf(space ?? {}) : drawn());
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
   * Runs the trials, then trains with the best parameters. Events: a phase 'tune' counted in trials, a note for each, and all of
   * the last fit's. A trial that diverges, does not fit, or has no value of the metric is marked and the others go on; where all failed, the
   * reason of the first is thrown as DataError.
   */
  async fit(ratings: Dataset, options: TuneOptions = {}): Promise<Tuning> {
    requireDataset(ratings, 'TrainValidationSplit.fit');
    checkOptions('TrainValidationSplit.fit', options, ['validation', 'onTrial', 'done', ...runOptionNames]);
    const { signal, onEvent = noEvents, validation } = options;
    if (validation !== undefined) requireDataset(validation, 'the option validation of TrainValidationSplit.fit');
    requireReplayable(ratings, 'tuning');
    const { user, item } = this.#make(this.trials[0].params).columns;
    const [train, held] = validation === undefined ? ratings.randomSplit([1 - this.validationFraction, this.validationFraction], { seed: validationSeed(this.seed), userCol: user, itemCol: item }) : [ratings, validation];
    const search = new Search(this, { ...options, onEvent }, { train: keptDataset(train), validation: keptDataset(held) }, this.#options);
    const trials = await search.trials();
    throwIfAborted(signal, 'tune');
    const best = bestOf(trials, this.metric);
    const { baselines, value } = best;
    if (this.metric === 'rmse' && baselines && value >= baselines.dampedMeans.rmse) {
      onEvent({ type: 'warning', code: 'no-better-than-means', text: `no trial has a lower RMSE than damped means of items and users, ${baselines.dampedMeans.rmse.toFixed(4)}. Search other values: larger regParam, smaller rank` });
    }
    const { earlyStop: _, earlyStopMetric: __, targetRmse: ___, ...params } = best.params as Readonly<Record<string, unknown>>;
    const final = this.#make({ ...params, ...(best.bestIteration < best.iterations ? { maxIter: best.bestIteration } : {}) });
    const model = await final.fit(ratings, { signal, onEvent, ...(isOwn(final) ? { continued: { tuning: evidenceOf(this, best, trials) } } : {}) });
    return { best, trials, model };
  }

  /** The estimator of a combination. */
  #make(params: TrialParams): TunedEstimator {
    return this.#options.estimator(params);
  }
}

/** The seed of the split: ratings that were split by the same seed before would else be split into all and none. */
export function validationSeed(seed: number): number {
  return mix32(seed, VALIDATION_STREAM);
}

const VALIDATION_STREAM = 0x7a11da7e;

/** The facts about a search that a model is saved with. */
function evidenceOf({ metric, search, seed }: TrainValidationSplit, { number, value }: Trial, trials: readonly Trial[]): JsonObject {
  return { metric, search, seed, best: number, value, trials: trials.map(({ seconds: _seconds, baselines: _baselines, ...trial }) => JSON.parse(JSON.stringify(trial)) as JsonObject) };
}

/** The best trial: of equal ones the first. Throws DataError where all failed. */
export function bestOf(trials: readonly Trial[], metric: string): Trial {
  const usable = trials.filter(({ failure, stopped }) => failure === undefined && !stopped);
  if (usable.length === 0) throw new DataError(`no trial has a ${metric}: ${trials[0]?.failure ?? 'there was none'}`, { phase: 'tune', advice: 'Change the search, or the ratings that are held out' });
  return usable.reduce((left, right) => (isBetter(right.value, left.value, metric) ? right : left));
}

export function isBetter(value: number, than: number, metric: string): boolean {
  return isError(metric) ? value < than : value > than;
}

type SearchRun = TuneOptions & { readonly onEvent: (event: ProgressEvent) => void };

/** One search on loaded ratings. */
class Search {
  readonly #split: TrainValidationSplit;
  readonly #run: SearchRun;
  readonly #ratings: TrialRatings;
  readonly #options: TrainValidationSplitOptions;
  readonly #done: ReadonlyMap<string, Trial>;
  readonly #results = new Map<number, Trial>();

  constructor(split: TrainValidationSplit, run: SearchRun, ratings: TrialRatings, options: TrainValidationSplitOptions) {
    this.#split = split;
    this.#run = run;
    this.#ratings = ratings;
    this.#options = options;
    this.#done = new Map((run.done ?? []).map((trial) => [keyOf(trial), trial]));
  }

  /** Runs them all. */
  async trials(): Promise<Trial[]> {
    const { trials, search } = this.#split;
    const phase = startPhase(this.#run.onEvent, 'tune', 'trials', trials.length);
    const tell = () => phase.progress(this.#results.size);
    if (search === 'halving') await this.#halve(tell);
    else {
      const warm = this.#options.warmStart === true && trials.every(({ params }) => isAls(this.#options.estimator(params)));
      await this.#together(chainsOf(trials, warm), (chain) => this.#chain(chain, tell));
    }
    phase.end(trials.length);
    return trials.map(({ number }) => this.#results.get(number) as Trial);
  }

  /** Runs jobs side by side, as many as asked for; the first error ends them. */
  async #together<Job>(jobs: readonly Job[], work: (job: Job) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async () => {
      while (next < jobs.length) await work(jobs[next++]);
    };
    await Promise.all(Array.from({ length: Math.min(this.#options.parallelism ?? 1, jobs.length) }, worker));
  }

  /** A chain that was not ended in an earlier run begins again, so that its trials have the same starts. */
  async #chain(chain: readonly PlannedTrial[], tell: () => void): Promise<void> {
    const known = chain.map((planned) => this.#done.get(keyOf(planned)));
    const whole = known.every((trial) => trial !== undefined);
    let factors: AlsStart | undefined;
    for (const [at, planned] of chain.entries()) {
      const done = known[at];
      if (whole && done !== undefined) this.#results.set(planned.number, done);
      else {
        const ran = await this.#trial(planned, factors === undefined ? {} : { iterations: warmIterations(this.#maxIter(planned)), from: { factors, iterations: 0, warm: true } });
        ({ factors } = ran);
        await this.#end(ran.trial, done === undefined);
      }
      tell();
    }
  }

  async #halve(tell: () => void): Promise<void> {
    const { trials, metric } = this.#split;
    const rungs = rungsOf(trials.length, Math.min(...trials.map((trial) => this.#maxIter(trial))));
    const reached = new Map<number, { readonly factors: AlsStart; readonly iterations: number; readonly warm: false }>();
    let left = trials;
    for (const planned of trials) {
      const done = this.#done.get(keyOf(planned));
      if (done !== undefined) this.#results.set(planned.number, done);
    }
    tell();
    for (const [rung, { share, survivors }] of rungs.entries()) {
      const last = rung === rungs.length - 1;
      const values = new Map<number, Trial>();
      await this.#together(left, async (planned) => {
        const done = this.#done.get(keyOf(planned));
        const target = Math.max(1, Math.round(share * this.#maxIter(planned)));
        if (done !== undefined && (done.failure !== undefined || (done.stopped && done.iterations === target) || (!done.stopped && last))) {
          values.set(planned.number, done);
          return;
        }
        const from = reached.get(planned.number);
        const ran = await this.#trial(planned, { iterations: target - (from?.iterations ?? 0), from });
        if (ran.factors) reached.set(planned.number, { factors: ran.factors, iterations: target, warm: false });
        values.set(planned.number, ran.trial);
      });
      const ranked = [...values.values()].filter(({ failure }) => failure === undefined).sort((a, b) => (isBetter(a.value, b.value, metric) ? -1 : isBetter(b.value, a.value, metric) ? 1 : a.number - b.number));
      const going = new Set(last ? [] : ranked.slice(0, survivors).map(({ number }) => number));
      for (const [number, trial] of values) {
        if (going.has(number)) continue;
        reached.delete(number);
        const ended = last || trial.failure !== undefined ? trial : { ...trial, stopped: true };
        await this.#end(ended, !this.#results.has(number));
        tell();
      }
      left = left.filter(({ number }) => going.has(number));
    }
  }

  async #trial({ number, params }: PlannedTrial, how: { readonly iterations?: number; readonly from?: Parameters<typeof runTrial>[0]['from'] }): Promise<RanTrial> {
    const { signal, onEvent } = this.#run;
    throwIfAborted(signal, 'tune');
    // A warning about the ratings has a code, and comes once, with the last fit.
    const own = (event: ProgressEvent) => void (event.type === 'warning' && event.code === undefined && onEvent(event));
    return runTrial({ number, params, metric: this.#split.metric, make: this.#options.estimator, signal, onEvent: own, ...how }, this.#ratings);
  }

  async #end(trial: Trial, tell: boolean): Promise<void> {
    this.#results.set(trial.number, trial);
    if (!tell) return;
    this.#run.onEvent({ type: 'note', text: describeTrial(trial, this.#split.metric) });
    await this.#run.onTrial?.(trial);
  }

  #maxIter({ params }: PlannedTrial): number {
    const made = this.#options.estimator(params) as { readonly params?: { readonly maxIter?: number } };
    return made.params?.maxIter ?? 10;
  }
}

function isAls(estimator: TunedEstimator): boolean {
  return estimator instanceof ALS;
}

function keyOf({ params }: { readonly params: object }): string {
  return JSON.stringify(params);
}

/** "rank 8, regParam 0.05: rmse 0.8312 after 10 iterations" */
export function describeTrial({ params, value, iterations, failure, stopped }: Trial, metric: string): string {
  const names = Object.entries(params).map(([name, one]) => `${name} ${Array.isArray(one) ? one.join(',') : String(one)}`).join(', ');
  return `${names}: ${failure ?? `${metric} ${value.toFixed(4)} after ${counted(iterations, 'iteration')}${stopped ? ', stopped' : ''}`}`;
}
