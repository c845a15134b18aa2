import { CapacityError, DataError, DivergedError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { noEvents, startPhase } from '../../engine/events.ts';
import { shown } from '../../engine/format.ts';
import { parseMetric } from '../../operators/evaluation/ranking/ranking-metrics.ts';
import type { Baselines, PairErrors } from '../../operators/evaluation/rating-facts.ts';
import { checkOptions, checkSeed, runOptionNames } from '../check-options.ts';
import { type Dataset, requireDataset, type TrainTest } from '../dataset.ts';
import type { FitOptions } from '../fit-options.ts';
import { pairsOf } from '../found-columns.ts';
import type { Model } from '../model.ts';
import { requireReplayable } from '../run-rows.ts';
import type { RunOptions } from '../run-session.ts';
import { keptDataset } from '../training/kept-ratings.ts';
import { isError, requireErrors } from './error-metrics.ts';
import { requireMaker, type TuningMetric, tuningMetricOf, withoutCoded } from './tuning/trial.ts';
import { splitParams } from '../option-params.ts';

/** An estimator that can be cross-validated: `ALS`, `SGD`, or another object with a `fit`. */
export interface Estimator {
  readonly columns: { readonly user: string; readonly item: string };
  fit(ratings: Dataset, options?: FitOptions): Promise<Model>;
}

/** The measure that ranks combinations: an error, or a metric of full rankings such as 'ndcg@20'. */
export type CrossValidationMetric = TuningMetric;

export interface CrossValidatorOptions<P extends object> {
  /** Creates the estimator for one combination of parameters. */
  readonly estimator: (params: P) => Estimator;
  /** The combinations to compare, e.g. from `paramGrid`. */
  readonly grid: readonly P[];
  /** Number of parts of the ratings, each held out once: 2 or more. Default 3. */
  readonly numFolds?: number;
  /** Seed of the folds; default 0. */
  readonly seed?: number;
  /**
   * The measure that ranks combinations, averaged over the folds: 'rmse', 'mae', or a ranking metric such as
   * 'ndcg@20', for which larger is better. Implicit data need a ranking metric. Default 'rmse'.
   */
  readonly metric?: CrossValidationMetric;
}

/**
 * The errors of one fold's model on the fold's held-out ratings; NaN if the metric is one of rankings.
 */
export interface FoldErrors {
  /** The metric. */
  readonly value: number;
  readonly rmse: number;
  readonly mae: number;
  readonly pairs: number;
  /** Pairs with a user or an item that is not in the other folds; not averaged in. */
  readonly coldPairs: number;
  /** Errors of the other folds' means over the same pairs; absent if the models have none. */
  readonly baselines?: Baselines;
}

/**
 * The result of one combination: `value`, the metric, and `rmse` and `mae` are means over the folds. NaN if
 * it failed; `rmse` and `mae` also if the metric is one of rankings.
 */
export interface CrossValidationResult<P extends object> {
  readonly params: P;
  readonly value: number;
  readonly rmse: number;
  readonly mae: number;
  readonly folds: readonly FoldErrors[];
  /** Means over the folds; absent if a fold has none. */
  readonly baselines?: Baselines;
  readonly seconds: number;
  /** The error of a combination that diverged or did not fit into memory. */
  readonly failure?: DivergedError | CapacityError;
}

export interface CrossValidation<P extends object> {
  readonly best: CrossValidationResult<P>;
  /** In the order of the grid. */
  readonly results: readonly CrossValidationResult<P>[];
  /** Trained on all ratings with the best parameters. */
  readonly model: Model;
}

/**
 * k-fold cross-validation over a grid of parameters, one fit at a time: each fit uses all workers already.
 * The folds equal `Dataset.kFold` and are the same for every combination; a fold is read, numbered and sorted
 * once for all of them. Immutable; `fit` may run many times.
 */
export class CrossValidator<P extends object> {
  readonly numFolds: number;
  readonly seed: number;
  readonly metric: CrossValidationMetric;
  readonly #candidates: readonly { readonly params: P; readonly estimator: Estimator }[];

  /** Creates every estimator, so that a parameter out of range throws UsageError before any training. */
  constructor(options: CrossValidatorOptions<P>) {
    checkOptions(
      'a cross-validator',
      options,
      ['estimator', 'grid', 'metric', 'seed'],
      '{ estimator, grid }',
      { numFolds: { ...splitParams.folds, called: 'numFolds' } },
    );
    const { estimator, grid, numFolds = 3, seed = 0, metric = 'rmse' } = options;
    requireMaker(estimator);
    if (!Array.isArray(grid))
      throw new UsageError(
        `grid must be an array of parameters such as paramGrid({ rank: [8, 16] }), got ${shown(grid)}`,
      );
    if (grid.length === 0) throw new UsageError('the grid of a cross-validator is empty');
    tuningMetricOf(metric);
    checkSeed(seed);
    this.#candidates = grid.map((params) => ({ params, estimator: estimator(params) }));
    for (const one of this.#candidates) requireErrors(metric, one.estimator);
    this.numFolds = numFolds;
    this.seed = seed;
    this.metric = metric;
  }

  /**
   * Trains numFolds models per combination, then one on all ratings with the best parameters. Events: a phase
   * 'cross-validate' counted in fits, a note for each combination, and all events of the last fit. A
   * combination that diverges or does not fit into memory is recorded and skipped; any other failure ends the
   * run and is thrown. Throws the first failure if all combinations failed.
   */
  async fit(ratings: Dataset, options: RunOptions = {}): Promise<CrossValidation<P>> {
    requireDataset(ratings, 'CrossValidator.fit');
    checkOptions('CrossValidator.fit', options, runOptionNames);
    const { signal, onEvent = noEvents } = options;
    requireReplayable(ratings, 'cross-validation');
    const { user, item } = await pairsOf(ratings, this.#candidates[0].estimator.columns, {
      ...ratings.session.context({ signal }),
      events: noEvents,
    });
    const folds = ratings.kFold(this.numFolds, { seed: this.seed, userCol: user, itemCol: item });
    const phase = startPhase(onEvent, 'cross-validate', 'fits', this.#candidates.length * folds.length);
    const runs: Candidate<P>[] = this.#candidates.map((one) => ({ ...one, folds: [], seconds: 0 }));
    // A fold is loaded once for all combinations; only one fold is in memory at a time.
    for (const [i, fold] of folds.entries()) {
      const { test } = fold;
      const train = keptDataset(fold.train);
      for (const [at, run] of runs.entries()) {
        await runFold(run, { train, test }, i, this.metric, { signal, onEvent });
        phase.progress(i * runs.length + at + 1);
      }
    }
    const results = runs.map(resultOf);
    for (const result of results) onEvent({ type: 'note', text: describeResult(result, this.metric) });
    phase.end(this.#candidates.length * folds.length);
    const best = this.#best(results);
    const { estimator } = this.#candidates[results.indexOf(best)];
    const { baselines } = best;
    if (baselines && baselines.dampedMeans.rmse > 0 && best.rmse >= baselines.dampedMeans.rmse) {
      onEvent({
        type: 'warning',
        code: 'no-better-than-means',
        text: `no combination has a lower RMSE than damped means of items and users, ${baselines.dampedMeans.rmse.toFixed(4)}. Add others to the grid: larger regParam, smaller rank, biases: true`,
      });
    }
    return { best, results, model: await estimator.fit(ratings, { signal, onEvent }) };
  }

  /** The combination with the smallest error or the largest ranking metric; the first among equals. */
  #best(results: readonly CrossValidationResult<P>[]): CrossValidationResult<P> {
    const usable = results.filter(({ failure }) => failure === undefined);
    if (usable.length === 0) throw results[0].failure;
    const sign = isError(this.metric) ? 1 : -1;
    return usable.reduce((left, right) => (sign * right.value < sign * left.value ? right : left));
  }
}

/** A combination with what its folds have given so far. */
interface Candidate<P extends object> {
  readonly params: P;
  readonly estimator: Estimator;
  readonly folds: FoldErrors[];
  seconds: number;
  failure?: DivergedError | CapacityError;
}

/** Trains and measures a combination on one fold; does nothing if it failed before. */
async function runFold(
  candidate: Candidate<object>,
  { train, test }: TrainTest,
  fold: number,
  metric: CrossValidationMetric,
  { signal, onEvent }: RunOptions,
): Promise<void> {
  if (candidate.failure !== undefined) return;
  const started = performance.now();
  try {
    throwIfAborted(signal, 'cross-validate');
    const model = await candidate.estimator.fit(train, { signal, onEvent: withoutCoded(onEvent) });
    const measured = await measure(model, { train, test }, metric, signal);
    if (measured.pairs === measured.coldPairs)
      throw new DataError(`fold ${fold + 1} has no pair whose user and item are in the other folds`, {
        phase: 'cross-validate',
        advice: 'Use fewer folds, or more ratings',
      });
    candidate.folds.push(measured);
  } catch (error) {
    if (!(error instanceof DivergedError || error instanceof CapacityError)) throw error;
    candidate.failure = error;
  } finally {
    candidate.seconds += (performance.now() - started) / 1000;
  }
}

function resultOf<P extends object>(candidate: Candidate<P>): CrossValidationResult<P> {
  const { params, folds, seconds, failure } = candidate;
  if (failure !== undefined) return { params, value: NaN, rmse: NaN, mae: NaN, folds, seconds, failure };
  const baselines = folds.map((fold) => fold.baselines).filter((of) => of !== undefined);
  const ofMeans =
    baselines.length < folds.length
      ? undefined
      : {
          mean: meanErrors(baselines.map(({ mean }) => mean)),
          dampedMeans: meanErrors(baselines.map(({ dampedMeans }) => dampedMeans)),
        };
  const value = folds.reduce((sum, fold) => sum + fold.value, 0) / folds.length;
  return { params, value, ...meanErrors(folds), folds, baselines: ofMeans, seconds };
}

/** Measures a fold's model by the metric. */
async function measure(
  model: Model,
  { train, test }: TrainTest,
  metric: CrossValidationMetric,
  signal: AbortSignal | undefined,
): Promise<FoldErrors> {
  if (isError(metric)) {
    const { rmse, mae, pairs, coldPairs, baselines } = await model.evaluate(test, { signal });
    return { value: metric === 'rmse' ? rmse : mae, rmse, mae, pairs, coldPairs, baselines };
  }
  const { metric: name, k = 1 } = parseMetric(metric, 'metric');
  const { metrics, pairs, coldPairs } = await model.evaluateRanking(test, {
    metrics: [name],
    k,
    exclude: train,
    baselines: false,
    resamples: 0,
    signal,
  });
  return { value: metrics[metric], rmse: NaN, mae: NaN, pairs, coldPairs };
}

function meanErrors(errors: readonly PairErrors[]): PairErrors {
  const mean = (name: 'rmse' | 'mae') => errors.reduce((sum, one) => sum + one[name], 0) / errors.length;
  return { rmse: mean('rmse'), mae: mean('mae') };
}

function describeResult(
  { params, value, rmse, mae, baselines, failure }: CrossValidationResult<object>,
  metric: CrossValidationMetric,
): string {
  const text = Object.entries(params)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ');
  const means =
    baselines &&
    ` (damped means: RMSE ${baselines.dampedMeans.rmse.toFixed(4)}, MAE ${baselines.dampedMeans.mae.toFixed(4)})`;
  if (failure !== undefined) return `${text}: ${failure.message}`;
  return isError(metric)
    ? `${text}: RMSE ${rmse.toFixed(4)}, MAE ${mae.toFixed(4)}${means ?? ''}`
    : `${text}: ${metric} ${value.toFixed(4)}`;
}
