import type { Phase } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { BoundPlan, Versions } from '../../engine/plan/bound-plan.ts';
import { type ExecutionContext, onSpeculation } from '../../engine/run/context.ts';
import { expand, type Expanded, expandFree } from '../../engine/run/expand.ts';
import { runSteps, type StepResults } from '../../engine/run/run-steps.ts';
import type { Scope } from '../../engine/run/scope.ts';
import type { Step } from '../../engine/run/step.ts';
import { contracts } from '../tasks/tasks.ts';
import type { TrainingErrors } from './loss.ts';
import type { LoopOptions, Training, TrainingIteration, HostCopy } from './training.ts';

/** The factors on devices after a round, as version numbers of data sets. */
export interface Trained {
  readonly number: number;
  readonly versions: Versions;
}

/** A round expanded into steps but not sent. Its steps do not free the versions in `kept`. */
export interface ExpandedRound extends Trained, Expanded {
  readonly from: Versions;
  readonly params: JsonObject;
  readonly kept: readonly Versions[];
}

/** A round whose steps were sent to the devices, with promises of its results. */
export interface SentRound extends Trained {
  readonly params: JsonObject;
  /** True if it was sent before the errors of the previous round were known. */
  readonly speculative: boolean;
  /**
   * True if the round and its measure were sent at once to a single device that works in order. Work that is
   * sent later then runs after them.
   */
  readonly inOrder: boolean;
  /** Seconds of the round. Throws the error of its steps, or DivergedError. */
  readonly ran: Promise<number>;
  /** Undefined for a round that is not measured. */
  readonly errors: Promise<TrainingErrors> | undefined;
  /** Resolves when the factors are in host memory; present for a round that was sent with `fetches`. */
  readonly fetched: Promise<StepResults> | undefined;
}

export interface SendOptions {
  /**
   * Also copies the factors to the host, before they are measured. Ignored unless one device runs the whole
   * round in order.
   */
  readonly fetches: boolean;
  readonly speculative: boolean;
}

/**
 * Sends the steps of a training to its devices: the start, the rounds, their measures, and copies of factors
 * to the host.
 */
export class Rounds<Factors> {
  readonly training: Training<Factors>;
  readonly options: LoopOptions<Factors>;
  readonly ctx: ExecutionContext;
  readonly #phase: Phase;
  readonly #scope: Scope;
  readonly #clock = new RoundClock();
  /**
   * Resolves when the clock has recorded the end of the latest round and, if its measure was sent with it, of
   * the measure.
   */
  #clocked: Promise<unknown> = Promise.resolve();

  constructor(training: Training<Factors>, options: LoopOptions<Factors>, scope: Scope, phase: Phase) {
    [this.training, this.options, this.#phase] = [training, options, phase];
    [this.#scope, this.ctx] = [scope, scope.ctx];
  }

  /**
   * True if a version of the factors can be measured at any time while it is kept. False if data derived from
   * it are freed earlier.
   */
  get hasWholeVersions(): boolean {
    return this.training.bound.datasets.every(({ derived }) => !derived);
  }

  /** Runs the start, and returns its versions. */
  async start(): Promise<Versions> {
    const { training, ctx } = this;
    using _ = ctx.metrics.begin('start');
    const { steps, versions } = expand(training.bound, contracts, 'start', {});
    const start = this.#scope.follow(runSteps(steps, ctx, { given: training.given.splice(0) }));
    await Promise.all([start, this.#scope.follow(training.starting?.(ctx) ?? Promise.resolve())]);
    return versions;
  }

  expand(from: Versions, number: number, kept: readonly Versions[]): ExpandedRound {
    const params = this.training.round(number);
    const expanded = expand(this.training.bound, contracts, 'round', from, { number, params }, kept);
    return { ...expanded, number, from, params, kept };
  }

  send({ number, params, steps, versions }: ExpandedRound, options: SendOptions): SentRound {
    const { bound } = this.training;
    const { fetches, speculative } = options;
    const state = { number, versions };
    const sent = performance.now();
    const ctx = speculative ? onSpeculation(this.ctx) : this.ctx;
    const results = this.#scope.follow(this.#run(number, steps, ctx));
    const before = speculative ? this.#clocked : undefined;
    const ran = this.#scope.follow(
      results.then(async (ended) => {
        await before;
        return this.#clock.round(ended, sent, speculative);
      }),
    );
    this.#clocked = ran.catch(() => undefined);
    const atOnce = isSentAtOnce(bound, steps);
    const fetched = fetches && atOnce ? this.#scope.follow(this.toHost(state, results, ctx)) : undefined;
    const measures = this.#measures(number) ? this.#measureSteps(state, this.#isBrief(number)) : [];
    const measure = () => {
      const measuring = this.#scope.follow(runSteps(measures, ctx, { clocked: true }));
      this.#clocked = Promise.all([measuring, ran]).then(
        ([ended]) => this.#clock.measured(ended),
        () => undefined,
      );
      return this.#measure(state, results, measuring);
    };
    // If the round went to one device that works in order, its measure is sent at once, so that the device
    // does not pause between them.
    const errors = this.#measures(number)
      ? this.#scope.follow(atOnce ? measure() : ran.then(measure))
      : undefined;
    const inOrder = atOnce && isSentAtOnce(bound, measures);
    return { number, versions, params, speculative, inOrder, ran, errors, fetched };
  }

  /** Errors of a version from a pass over the ratings. */
  async exact(state: Trained): Promise<TrainingErrors> {
    using _ = this.ctx.metrics.begin('measure');
    const results = await this.#scope.follow(
      runSteps(this.#measureSteps(state, false), this.ctx, { clocked: true }),
    );
    this.#clock.measured(results);
    return this.training.errors(results);
  }

  async free(versions: Versions, kept: readonly Versions[]): Promise<void> {
    await runSteps(expandFree(this.training.bound, contracts, 'train', versions, kept), this.ctx);
  }

  /**
   * Copies the factors of a version to the host. `round`: the round that computes them, if it is still
   * running; its time does not count as fetching.
   */
  async toHost(
    { number, versions }: Trained,
    round?: Promise<unknown>,
    ctx = this.ctx,
  ): Promise<StepResults> {
    const { steps } = expand(this.training.bound, contracts, 'end', versions, { number });
    const fetching = this.#scope.follow(runSteps(steps, ctx));
    await round;
    using _ = this.ctx.metrics.begin('fetch factors');
    return fetching;
  }

  async #run(number: number, steps: readonly Step[], ctx: ExecutionContext): Promise<StepResults> {
    using _ = this.ctx.metrics.begin(`${this.options.called}s`);
    const onProgress = (finished: number, of: number) => this.#phase.progress(number - 1 + finished / of);
    const ran = await runSteps(steps, ctx, { onProgress, clocked: true });
    this.training.check(number, ran);
    return ran;
  }

  #measures(number: number): boolean {
    const { measuresEnds = false, maxIter } = this.options;
    return !measuresEnds || number === 1 || number === maxIter;
  }

  /**
   * True if the errors of a round can be computed from its own results. The last round is always measured
   * exactly, by a pass over the ratings.
   */
  #isBrief(number: number): boolean {
    return number < this.options.maxIter && this.training.errorsOfRound !== undefined;
  }

  #measureSteps({ number, versions }: Trained, brief: boolean): readonly Step[] {
    return expand(this.training.bound, contracts, 'measure', versions, { number, brief }).steps;
  }

  async #measure(state: Trained, round: Promise<StepResults>, measuring: Promise<StepResults>) {
    const ran = await round;
    using _ = this.ctx.metrics.begin('measure');
    const results = await measuring;
    const solved = this.training.errorsOfRound?.(results, ran);
    if (!this.#isBrief(state.number)) return withSolved(this.training.errors(results), solved);
    return solved ?? this.exact(state);
  }
}

/**
 * True if all steps can be sent at once to a single device that works in order, without transfers from the
 * host. Later steps then find the versions that these make, and cannot change the versions that these read.
 */
function isSentAtOnce({ devices }: BoundPlan, steps: readonly Step[]): boolean {
  const device = devices.find(({ place }) => place === steps[0]?.at);
  return steps.every(
    ({ at, ended, do: { kind } }) =>
      device?.inOrder && at === device.place && ended.length === 0 && kind !== 'move' && kind !== 'spill',
  );
}

/**
 * Measures the time of each round, from the end of the work before it to its own end, so that the times of
 * consecutive rounds neither overlap nor leave gaps.
 */
export class RoundClock {
  /**
   * The time at which the latest steps ended: by the host's clock, in milliseconds, and by each device's own
   * clock.
   */
  #host = 0;
  #ends: StepResults['ends'] = new Map();

  /**
   * Seconds of a round whose steps have ended; the measure before it is not included. `sent`: time of
   * sending, in milliseconds of performance.now(). `follows`: true if the round was sent to a single device
   * that still ran earlier steps. Then the device's clock is used: the host may learn of both ends at the
   * same time.
   */
  round({ ends }: StepResults, sent: number, follows: boolean): number {
    const before = this.#ends;
    const from = Math.max(sent, this.#host);
    this.measured({ ends });
    const [end, ...others] = ends;
    const start = end && before.get(end[0]);
    const known = follows && others.length === 0 && start !== undefined && end[1] > start;
    return (known ? end[1] - start : this.#host - from) / 1000;
  }

  /** Records the end of other steps, such as a round's measure. */
  measured({ ends }: Pick<StepResults, 'ends'>): void {
    this.#host = performance.now();
    if (ends.size > 0) this.#ends = ends;
  }
}

/**
 * The exact errors of the last round, from a pass over the ratings, together with the errors that its solve
 * had computed (as `solved`).
 */
export function withSolved<Errors extends TrainingErrors>(
  errors: Errors,
  told: TrainingErrors | undefined,
): Errors {
  return told?.fromSolve && !errors.fromSolve
    ? {
        ...errors,
        solved: { loss: told.loss, ...(told.trainRmse === undefined ? {} : { trainRmse: told.trainRmse }) },
      }
    : errors;
}

/**
 * The iterations of the copy from which a run continues. The last one gets back the errors that its solve
 * computed: the errors that it would show had the run not been interrupted.
 */
export function iterationsOf(copy: HostCopy<unknown> | undefined): TrainingIteration[] {
  return (copy?.iterations ?? []).map((one) => {
    const { solved, testMetrics, ...report } = one;
    return solved === undefined
      ? one
      : { ...report, ...solved, fromSolve: true, ...(testMetrics && { testMetrics }) };
  });
}
