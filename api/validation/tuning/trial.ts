import { CapacityError, DataError, DivergedError, UsageError } from '../../../engine/errors.ts';
import { type EventSink, noEvents } from '../../../engine/events.ts';
import { shown } from '../../../engine/format.ts';
import type { AlsStart } from '../../../operators/als/factors.ts';
import type { TrainingWarning } from '../../../operators/evaluation/model-warnings.ts';
import type { HeldOutRanking } from '../../../operators/evaluation/ranking/held-out-ranking.ts';
import {
  parseMetric,
  type RankingMetricName,
} from '../../../operators/evaluation/ranking/ranking-metrics.ts';
import type { Baselines } from '../../../operators/evaluation/rating-facts.ts';
import type { TrainingIteration } from '../../../operators/training/training.ts';
import type { Dataset } from '../../dataset.ts';
import type { FitOptions } from '../../fit-options.ts';
import type { Model } from '../../model.ts';
import type { RunOptions } from '../../run-session.ts';
import { ALS } from '../../training/als.ts';
import { SGD } from '../../training/sgd.ts';
import { isError } from '../error-metrics.ts';
import type { RankUsersOption } from '../ranking-options.ts';
import type { TrialParams } from './search-space.ts';

/** The outcome of one combination of parameters. Plain data. */
export interface Trial<P extends object = TrialParams> {
  /** From 1, in the order of the search. */
  readonly number: number;
  readonly params: P;
  /** The metric on the validation ratings; NaN if the trial failed. */
  readonly value: number;
  /** Total number of iterations, or epochs; and the one with the value. */
  readonly iterations: number;
  readonly bestIteration: number;
  readonly rmse?: number;
  readonly mae?: number;
  readonly baselines?: Baselines;
  /** Rankings of the validation ratings, if requested, for a trial that was the best when it ended. */
  readonly ranking?: HeldOutRanking;
  readonly seconds: number;
  /** True if it started with the factors of a trial with another λ. */
  readonly warm?: boolean;
  /** True if successive halving stopped it: other trials were better after the same number of iterations. */
  readonly stopped?: boolean;
  /**
   * Set if an earlier iteration was noticeably better (code `past-best`): all epochs are compared for SGD,
   * the first and last iteration for ALS.
   */
  readonly warnings?: readonly TrainingWarning[];
  /** The reason if a trial diverged, did not fit, or its metric cannot be computed. */
  readonly failure?: string;
}

/** An estimator that can be tuned: `ALS`, `SGD`, or another object with a `fit` and columns. */
export interface TunedEstimator {
  readonly columns: { readonly user: string; readonly item: string };
  fit(ratings: Dataset, options?: FitOptions): Promise<Model>;
}

/** The ratings of all trials. */
export interface TrialRatings {
  readonly train: Dataset;
  readonly validation: Dataset;
}

export interface TrialRun extends RunOptions, RankUsersOption {
  readonly number: number;
  readonly params: TrialParams;
  readonly metric: TuningMetric;
  /** Creates the estimator. The search may add parameters to the trial's own. */
  readonly make: (params: TrialParams) => TunedEstimator;
  /** Number of iterations, if it differs from the trial's own. */
  readonly iterations?: number | undefined;
  /**
   * Decides from the value of the metric whether the model also ranks the validation ratings. If absent, no
   * model does.
   */
  readonly ranks?: ((value: number) => boolean) | undefined;
  /** Factors to continue from, and their number of iterations. */
  readonly from?:
    | { readonly factors: AlsStart; readonly iterations: number; readonly warm: boolean }
    | undefined;
}

export interface RanTrial {
  readonly trial: Trial;
  /** The factors of an ALS trial. */
  readonly factors: AlsStart | undefined;
  /** For a failed trial. */
  readonly error?: CapacityError | DivergedError | DataError;
}

/** The measure that compares trials: an error, or a metric of full rankings. */
export type TuningMetric = 'rmse' | 'mae' | RankingMetricName;

/** The metric with a name. Throws UsageError for an unknown name. */
export function tuningMetricOf(text: string): TuningMetric {
  return isError(text) ? text : parseMetric(text, 'metric').name;
}

/** Throws UsageError for an option `estimator` that makes none. */
export function requireMaker(estimator: unknown): void {
  if (typeof estimator !== 'function')
    throw new UsageError(
      `estimator must be a function such as (params) => new ALS(params), got ${shown(estimator)}`,
    );
}

/**
 * A listener for one of many fits: warnings with a code are about the ratings and would repeat in each fit;
 * the last fit reports them.
 */
export function withoutCoded(onEvent: EventSink = noEvents): EventSink {
  return (event) => void (event.type === 'warning' && event.code === undefined && onEvent(event));
}

/** Trains one trial. If it diverges or does not fit, the trial has a failure; another error is thrown. */
export async function runTrial(run: TrialRun, ratings: TrialRatings): Promise<RanTrial> {
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  try {
    const { model, factors } = await train(run, ratings);
    return { trial: { ...outcomeOf(run, model), seconds: seconds(), ...noted(run, model) }, factors };
  } catch (error) {
    if (!isOfTrial(error)) throw error;
    const { number, params } = run;
    const none = { value: Number.NaN, iterations: 0, bestIteration: 0 };
    return {
      trial: { number, params, ...none, seconds: seconds(), failure: error.summary },
      factors: undefined,
      error,
    };
  }
}

/** Trains the model of a trial; also returns its factors if the estimator is ALS or SGD of this library. */
async function train(
  { params, metric, make, iterations, from, rankUsers, ranks, signal, onEvent }: TrialRun,
  ratings: TrialRatings,
): Promise<{ readonly model: Model; readonly factors: AlsStart | undefined }> {
  let factors: AlsStart | undefined;
  const estimator = make({
    ...params,
    ...(iterations === undefined ? {} : { maxIter: iterations }),
    ...rankedBy(metric, params, iterations, make),
  });
  const measuresEnds = isError(metric) && !endsEarly(estimator);
  const asked = ranks && {
    ranks: (best: TrainingIteration | undefined) => ranks(valueOf(best, metric) ?? Number.NaN),
  };
  const kept = (ended: AlsStart) => (factors = ended);
  const continued = { ...asked, measuresEnds, start: from?.factors, kept };
  const model = await estimator.fit(ratings.train, {
    validation: ratings.validation,
    signal,
    onEvent,
    ...(isOwn(estimator) ? { rankUsers, continued } : {}),
  });
  return { model, factors };
}

/** The measures of a trained model. Throws DataError if the metric cannot be computed. */
function outcomeOf({ number, params, metric, from }: TrialRun, { training }: Model): Omit<Trial, 'seconds'> {
  const best = training?.iterations.find(({ iteration }) => iteration === training.bestIteration);
  const value = valueOf(best, metric);
  if (training === undefined || value === undefined || !Number.isFinite(value))
    throw new DataError(`${metric} cannot be computed on the validation ratings`, {
      phase: 'tune',
      advice: 'Check that their users and items occur in the ratings to train on',
    });
  const before = from?.warm === false ? from.iterations : 0;
  const { iterations, bestIteration, baselines, ranking } = training;
  return {
    number,
    params,
    value,
    iterations: before + (iterations.at(-1)?.iteration ?? 0),
    bestIteration: before + bestIteration,
    ...definedOf({ rmse: best?.testRmse, mae: best?.testMae, baselines, ranking }),
  };
}

/** Notes for a trial: a start from other factors, and warnings about its iterations. */
function noted({ from }: TrialRun, { training }: Model): Pick<Trial, 'warm' | 'warnings'> {
  // A trial that continues after successive halving numbers its iterations from 1 again, so its warnings
  // would be misleading.
  const warnings =
    from === undefined ? training?.warnings.filter(({ code }) => code === 'past-best') : undefined;
  return { ...(from?.warm ? { warm: true } : {}), ...(warnings?.length ? { warnings } : {}) };
}

/** The properties that are defined. */
function definedOf<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** True for an error that only this trial has, false for an error of the ratings themselves. */
function isOfTrial(error: unknown): error is CapacityError | DivergedError | DataError {
  return (
    error instanceof DivergedError ||
    error instanceof CapacityError ||
    (error instanceof DataError && error.details.phase === 'tune')
  );
}

function valueOf(best: TrainingIteration | undefined, metric: string): number | undefined {
  return isError(metric) ? (metric === 'rmse' ? best?.testRmse : best?.testMae) : best?.testMetrics?.[metric];
}

/**
 * True for ALS and SGD, which accept the settings that a search passes from one fit to the next (Continued).
 */
export function isOwn(estimator: TunedEstimator): boolean {
  return estimator instanceof ALS || estimator instanceof SGD;
}

/** True for an estimator whose factors may be from an iteration before its last. */
export function endsEarly(estimator: TunedEstimator): boolean {
  const { params } = estimator as {
    readonly params?: { readonly earlyStop?: number; readonly targetRmse?: number };
  };
  return params?.earlyStop !== undefined || params?.targetRmse !== undefined;
}

/**
 * Further parameters of a trial if the metric ranks: early stopping on that metric, with a patience of all
 * iterations, so that each is measured and none ends the training. If the trial itself has early stopping,
 * that is kept.
 */
function rankedBy(
  metric: TuningMetric,
  params: TrialParams,
  iterations: number | undefined,
  make: TrialRun['make'],
): TrialParams {
  if (isError(metric) || params.earlyStop !== undefined)
    return isError(metric) ? {} : { earlyStopMetric: metric };
  const { params: own } = make(params) as {
    readonly params?: { readonly maxIter?: number; readonly earlyStop?: number };
  };
  return { earlyStop: own?.earlyStop ?? iterations ?? own?.maxIter ?? 1, earlyStopMetric: metric };
}
