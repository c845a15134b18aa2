import { type CapacityError, DataError, type DivergedError, throwIfAborted } from '../../../engine/errors.ts';
import { type ProgressEvent, startPhase } from '../../../engine/events.ts';
import { counted } from '../../../engine/format.ts';
import type { AlsStart } from '../../../operators/als/factors.ts';
import { ALS } from '../../training/als.ts';
import { isError } from '../error-metrics.ts';
import type { TrialParams } from './search-space.ts';
import {
  endsEarly,
  type RanTrial,
  runTrial,
  type Trial,
  type TrialRatings,
  type TunedEstimator,
  type TuningMetric,
  withoutCoded,
} from './trial.ts';
import type { SearchStrategy, TrainValidationSplitOptions, TuneOptions } from './tuning-options.ts';

/** The best trial; the first among equals. Throws DataError if all failed. */
export function bestOf(trials: readonly Trial[], metric: string): Trial {
  const usable = trials.filter(({ failure, stopped }) => failure === undefined && !stopped);
  if (usable.length === 0)
    throw new DataError(`no trial has a ${metric}: ${trials[0]?.failure ?? 'no trial was run'}`, {
      phase: 'tune',
      advice: 'Change the search, or the ratings that are held out',
    });
  return usable.reduce((left, right) => (isBetter(right.value, left.value, metric) ? right : left));
}

export function isBetter(value: number, than: number, metric: string): boolean {
  return isError(metric) ? value < than : value > than;
}

/** The trials of a search, its metric and its strategy. */
interface SearchedTrials {
  readonly trials: readonly PlannedTrial[];
  readonly metric: TuningMetric;
  readonly search: SearchStrategy;
}

type SearchRun = TuneOptions & { readonly onEvent: (event: ProgressEvent) => void };

/** One search on loaded ratings. */
export class Search {
  readonly #split: SearchedTrials;
  readonly #run: SearchRun;
  readonly #ratings: TrialRatings;
  readonly #options: TrainValidationSplitOptions;
  readonly #done: ReadonlyMap<string, Trial>;
  readonly #results = new Map<number, Trial>();
  /** The best value of the metric among trials whose model also ranked the validation ratings. */
  #bestRanked: number | undefined;
  /** The first failure of a trial. */
  failure: CapacityError | DivergedError | DataError | undefined;
  /** Fires when a trial ends the search. */
  readonly #ending = new AbortController();

  constructor(
    split: SearchedTrials,
    run: SearchRun,
    ratings: TrialRatings,
    options: TrainValidationSplitOptions,
  ) {
    this.#split = split;
    this.#run = run;
    this.#ratings = ratings;
    this.#options = options;
    this.#done = new Map((run.done ?? []).map((trial) => [keyOf(trial), trial]));
    for (const trial of run.done ?? []) this.#noteRanked(trial);
  }

  /** Runs all trials. */
  async trials(): Promise<Trial[]> {
    const { trials, search } = this.#split;
    const phase = startPhase(this.#run.onEvent, 'tune', 'trials', trials.length);
    const onProgress = () => phase.progress(this.#results.size);
    if (search === 'halving') await this.#halve(onProgress);
    else {
      const warm =
        this.#options.warmStart === true &&
        trials.every(({ params }) => isAls(this.#options.estimator(params)));
      await this.#together(chainsOf(trials, warm), (chain) => this.#chain(chain, onProgress));
    }
    phase.end(trials.length);
    return trials.map(({ number }) => this.#results.get(number) as Trial);
  }

  /** Runs jobs in parallel, at most the requested number; the first error stops them. */
  async #together<Job>(jobs: readonly Job[], work: (job: Job) => Promise<void>): Promise<void> {
    let next = 0;
    const errors: unknown[] = [];
    const worker = async () => {
      try {
        while (next < jobs.length && errors.length === 0) await work(jobs[next++]);
      } catch (error) {
        errors.push(error);
        this.#ending.abort();
      }
    };
    await Promise.all(Array.from({ length: Math.min(this.#options.parallelism ?? 1, jobs.length) }, worker));
    if (errors.length > 0) throw errors[0];
  }

  /**
   * Runs the trials of a chain. If an earlier run completed only a part of it, the chain starts again: each
   * trial depends on the factors of the trials before it.
   */
  async #chain(chain: readonly PlannedTrial[], onProgress: () => void): Promise<void> {
    const known = chain.map((planned) => this.#done.get(keyOf(planned)));
    const whole = known.every((trial) => trial !== undefined);
    let factors: AlsStart | undefined;
    for (const [at, planned] of chain.entries()) {
      const done = known[at];
      if (whole && done !== undefined) this.#results.set(planned.number, done);
      else {
        const ran = await this.#trial(
          planned,
          factors === undefined
            ? {}
            : {
                iterations: warmIterations(this.#maxIter(planned)),
                from: { factors, iterations: 0, warm: true },
              },
        );
        ({ factors } = ran);
        await this.#end(ran.trial, done === undefined);
      }
      onProgress();
    }
  }

  async #halve(onProgress: () => void): Promise<void> {
    const { trials, metric } = this.#split;
    const rungs = rungsOf(trials.length, Math.min(...trials.map((trial) => this.#maxIter(trial))));
    const reached = new Map<
      number,
      { readonly factors: AlsStart; readonly iterations: number; readonly warm: false }
    >();
    let left = trials;
    for (const planned of trials) {
      const done = this.#done.get(keyOf(planned));
      if (done !== undefined) this.#results.set(planned.number, done);
    }
    onProgress();
    for (const [rung, { share, survivors }] of rungs.entries()) {
      const last = rung === rungs.length - 1;
      const values = new Map<number, Trial>();
      await this.#together(left, async (planned) => {
        const done = this.#done.get(keyOf(planned));
        const target = Math.max(1, Math.round(share * this.#maxIter(planned)));
        if (
          done !== undefined &&
          (done.failure !== undefined ||
            (done.stopped && done.iterations === target) ||
            (!done.stopped && last))
        ) {
          values.set(planned.number, done);
          return;
        }
        const from = reached.get(planned.number);
        const ran = await this.#trial(planned, {
          iterations: target - (from?.iterations ?? 0),
          from,
          ranks: last,
        });
        if (ran.factors && !this.#endsEarly(planned))
          reached.set(planned.number, { factors: ran.factors, iterations: target, warm: false });
        values.set(planned.number, ran.trial);
      });
      const ranked = [...values.values()]
        .filter(({ failure }) => failure === undefined)
        .sort((a, b) =>
          isBetter(a.value, b.value, metric)
            ? -1
            : isBetter(b.value, a.value, metric)
              ? 1
              : a.number - b.number,
        );
      const going = new Set(last ? [] : ranked.slice(0, survivors).map(({ number }) => number));
      for (const [number, trial] of values) {
        if (going.has(number)) continue;
        reached.delete(number);
        const ended = last || trial.failure !== undefined ? trial : { ...trial, stopped: true };
        await this.#end(ended, !this.#results.has(number));
        onProgress();
      }
      left = left.filter(({ number }) => going.has(number));
    }
  }

  async #trial(
    { number, params }: PlannedTrial,
    {
      ranks = true,
      ...how
    }: {
      readonly iterations?: number;
      readonly from?: Parameters<typeof runTrial>[0]['from'];
      readonly ranks?: boolean;
    },
  ): Promise<RanTrial> {
    const { signal, onEvent } = this.#run;
    throwIfAborted(signal, 'tune');
    const both = signal === undefined ? this.#ending.signal : AbortSignal.any([signal, this.#ending.signal]);
    const { metric } = this.#split;
    const isBest = (value: number) =>
      this.#bestRanked === undefined || !isBetter(this.#bestRanked, value, metric);
    const ranking = ranks && this.#ranks(params) ? isBest : undefined;
    const ran = await runTrial(
      {
        number,
        params,
        metric,
        make: this.#options.estimator,
        rankUsers: this.#options.rankUsers,
        ranks: ranking,
        signal: both,
        onEvent: withoutCoded(onEvent),
        ...how,
      },
      this.#ratings,
    );
    this.failure ??= ran.error;
    return ran;
  }

  async #end(trial: Trial, isNew: boolean): Promise<void> {
    this.#results.set(trial.number, trial);
    this.#noteRanked(trial);
    if (!isNew) return;
    this.#run.onEvent({
      type: 'note',
      text: `trial ${trial.number} of ${this.#split.trials.length}, ${describeTrial(trial, this.#split.metric)}`,
    });
    await this.#run.onTrial?.(trial);
  }

  #noteRanked({ ranking, value }: Trial): void {
    if (
      ranking !== undefined &&
      (this.#bestRanked === undefined || isBetter(value, this.#bestRanked, this.#split.metric))
    )
      this.#bestRanked = value;
  }

  /**
   * True if ranking metrics on the validation ratings are added to the best trial. Default: for implicit
   * data.
   */
  #ranks(params: PlannedTrial['params']): boolean {
    const { params: own } = this.#options.estimator(params) as {
      readonly params?: { readonly implicitPrefs?: boolean };
    };
    return this.#options.ranking ?? own?.implicitPrefs === true;
  }

  /** True for a trial whose factors may be from an iteration before its last. */
  #endsEarly({ params }: PlannedTrial): boolean {
    return !isError(this.#split.metric) || endsEarly(this.#options.estimator(params));
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

/**
 * "rank 8, regParam 0.05: rmse 0.8312 after 10 iterations", or "after 3 of 10 iterations" if the value is
 * from an earlier one.
 */
export function describeTrial(
  { params, value, iterations, bestIteration, failure, stopped }: Trial,
  metric: string,
): string {
  const names = Object.entries(params)
    .map(([name, one]) => `${name} ${Array.isArray(one) ? one.join(',') : String(one)}`)
    .join(', ');
  const after = `${bestIteration < iterations ? `${bestIteration} of ` : ''}${counted(iterations, 'iteration')}`;
  return `${names}: ${failure ?? `${metric} ${value.toFixed(4)} after ${after}${stopped ? ', stopped' : ''}`}`;
}

/** A trial before it runs. */
export interface PlannedTrial {
  /** From 1. */
  readonly number: number;
  readonly params: TrialParams;
}

/** Successive halving: after each rung, one of this number of trials continues. */
const HALVING_RATE = 3;

/**
 * With `warm`, groups trials that differ only in λ into chains, from the largest λ to the smallest: each
 * trial starts with the factors of the one before. Other trials are chains of their own. Chains are
 * independent of each other.
 */
export function chainsOf(trials: readonly PlannedTrial[], warm: boolean): PlannedTrial[][] {
  if (!warm) return trials.map((trial) => [trial]);
  const chains = new Map<string, PlannedTrial[]>();
  for (const trial of trials) {
    const { regParam, ...others } = trial.params;
    const key = typeof regParam === 'number' ? JSON.stringify(others) : `${trial.number}`;
    chains.set(key, [...(chains.get(key) ?? []), trial]);
  }
  return [...chains.values()].map((chain) =>
    chain.toSorted((a, b) => Number(b.params.regParam) - Number(a.params.regParam) || a.number - b.number),
  );
}

/** Iterations of a trial that starts with the factors of a larger λ. */
function warmIterations(maxIter: number): number {
  return Math.ceil(maxIter / 2);
}

/** One rung of successive halving: total iterations of each trial, and the number of trials that continue. */
interface Rung {
  /** Share of the trial's own iterations. */
  readonly share: number;
  readonly survivors: number;
}

/**
 * The rungs for a number of trials (Jamieson, Talwalkar 2016, Non-stochastic best arm identification and
 * hyperparameter optimization): a third of the trials continues with three times the iterations, and the last
 * rung has all iterations. The first has at least one iteration.
 *
 *     27 trials of 10 iterations    27 x 1, 9 x 3, 3 x 10 iterations
 */
export function rungsOf(trials: number, maxIter: number): Rung[] {
  const steps = Math.max(0, Math.min(Math.floor(logOf(trials)), Math.floor(logOf(maxIter))));
  return Array.from({ length: steps + 1 }, (_, rung) => ({
    share: HALVING_RATE ** (rung - steps),
    survivors: rung === steps ? 1 : Math.max(1, Math.ceil(trials / HALVING_RATE ** (rung + 1))),
  }));
}

/** Rounded, since the computed logarithm of 27 to the base 3 is just below 3. */
function logOf(value: number): number {
  return Number((Math.log(value) / Math.log(HALVING_RATE)).toFixed(9));
}
