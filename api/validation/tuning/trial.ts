import { CapacityError, DataError, DivergedError } from '../../../engine/errors.ts';
import type { AlsStart } from '../../../operators/als/bind/als-data.ts';
import type { HeldOutRanking } from '../../../operators/evaluation/ranking/held-out-ranking.ts';
import type { TrainingIteration } from '../../../operators/training/iteration.ts';
import type { Baselines } from '../../../operators/evaluation/baselines.ts';
import {
  parseMetric,
  type RankingMetricName,
} from '../../../operators/evaluation/ranking/ranking-metrics.ts';
import type { TrainingWarning } from '../../../operators/evaluation/rating-warnings.ts';
import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import type { FitOptions } from '../../fit-options.ts';
import type { RunOptions } from '../../run-session.ts';
import type { RankUsersOption } from '../rank-users.ts';
import { ALS } from '../../training/als.ts';
import { SGD } from '../../training/sgd.ts';
import type { TrialParams } from './search-space.ts';

/** The outcome of one combination of parameters. Plain data. */
export interface Trial<P extends object = TrialParams> {
  /** From 1, in the order of the search. */
  readonly number: number;
  readonly params: P;
  /** The metric on the validation ratings; NaN where the trial failed. */
  readonly value: number;
  /** Iterations, or epochs, in all; and the one that the value is of. */
  readonly iterations: number;
  readonly bestIteration: number;
  readonly rmse?: number;
  readonly mae?: number;
  readonly baselines?: Baselines;
  /**
   * Rankings of the validation ratings, of a trial that was the best when it ended, where they were asked
   * for.
   */
  readonly ranking?: HeldOutRanking;
  readonly seconds: number;
  /** True where the factors of another λ were the start. */
  readonly warm?: boolean;
  /** True where successive halving stopped it early: others with as many iterations were better. */
  readonly stopped?: boolean;
  /**
   * Set if an earlier iteration was noticeably better (code `past-best`): SGD by all epochs, ALS by the first
   * and the last iteration.
   */
  readonly warnings?: readonly TrainingWarning[];
  /** The reason of a trial that diverged, did not fit, or whose metric cannot be computed. */
  readonly failure?: string;
}

/** An estimator that can be tuned: `ALS`, `SGD`, or another object with a `fit` and columns. */
export interface TunedEstimator {
  readonly columns: { readonly user: string; readonly item: string };
  fit(ratings: Dataset, options?: FitOptions): Promise<Model>;
}

/** Ratings of all trials. */
export interface TrialRatings {
  readonly train: Dataset;
  readonly validation: Dataset;
}

export interface TrialRun extends RunOptions, RankUsersOption {
  readonly number: number;
  readonly params: TrialParams;
  readonly metric: TuningMetric;
  /** Makes the estimator, with further parameters of the search itself. */
  readonly make: (params: TrialParams) => TunedEstimator;
  /** Iterations, where not all of the trial's own. */
  readonly iterations?: number | undefined;
  /**
   * Asks, with the value of the metric, if the model is to rank the validation ratings. Without it no model
   * does.
   */
  readonly ranks?: ((value: number) => boolean) | undefined;
  /** Factors to go on from, and the iterations behind them. */
  readonly from?:
    | { readonly factors: AlsStart; readonly iterations: number; readonly warm: boolean }
    | undefined;
}

export interface RanTrial {
  readonly trial: Trial;
  /** The factors of a trial of ALS. */
  readonly factors: AlsStart | undefined;
  /** Of a trial with a failure. */
  readonly error?: CapacityError | DivergedError | DataError;
}

/** The measure that trials are compared by: an error, or a metric of full rankings. */
export type TuningMetric = 'rmse' | 'mae' | RankingMetricName;

/** The text as a metric. Throws UsageError where it names none. */
export function tuningMetricOf(text: string): TuningMetric {
  return isError(text) ? text : parseMetric(text, 'metric').name;
}

/** True for the metrics of single ratings; the others are of rankings. */
export function isError(metric: string): metric is 'rmse' | 'mae' {
  return metric === 'rmse' || metric === 'mae';
}

/** Trains one trial. One that diverges or does not fit is a trial with a failure; another error is thrown. */
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

/** Trains the model of a trial, which gives its factors where the estimator is of this program. */
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

/** The measures of a trained model. Throws DataError where the metric cannot be computed. */
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

/** Facts about the start and the course of a trial. */
function noted({ from }: TrialRun, { training }: Model): Pick<Trial, 'warm' | 'warnings'> {
  // Iterations of a trial that goes on from its earlier rung are numbered anew.
  const warnings =
    from === undefined ? training?.warnings.filter(({ code }) => code === 'past-best') : undefined;
  return { ...(from?.warm ? { warm: true } : {}), ...(warnings?.length ? { warnings } : {}) };
}

/** The properties that are defined. */
function definedOf<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** True for a failure of the trial; a fault of the ratings is not one. */
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

/** True for the estimators of this program, which take what a search hands from one fit to the next. */
export function isOwn(estimator: TunedEstimator): boolean {
  return estimator instanceof ALS || estimator instanceof SGD;
}

/** True for an estimator whose factors may be those of an earlier iteration than its last. */
export function endsEarly(estimator: TunedEstimator): boolean {
  const { params } = estimator as {
    readonly params?: { readonly earlyStop?: number; readonly targetRmse?: number };
  };
  return params?.earlyStop !== undefined || params?.targetRmse !== undefined;
}

/**
 * Parameters that let training measure a ranking: it never ends early by them, unless the trial asks for that
 * itself.
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
