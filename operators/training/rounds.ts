import type { JsonObject } from '../../engine/json.ts';
import type { Phase } from '../../engine/phase.ts';
import type { BoundPlan, Versions } from '../../engine/plan/bound-plan.ts';
import { type ExecutionContext, onSpeculation } from '../../engine/run/context.ts';
import { expand, type Expanded, expandFree } from '../../engine/run/expand.ts';
import { runSteps, type StepResults } from '../../engine/run/run-steps.ts';
import type { Scope } from '../../engine/run/scope.ts';
import type { Step } from '../../engine/run/step.ts';
import { contracts } from '../tasks/tasks.ts';
import type { TrainingErrors } from './loss.ts';
import { withSolved } from './solved-figures.ts';
import { RoundClock } from './round-clock.ts';
import type { LoopOptions, Training } from './training.ts';

/** Versions on devices after a round. */
export interface Trained {
  readonly number: number;
  readonly versions: Versions;
}

/** A round as steps; they do not free the versions in `kept`. */
export interface ExpandedRound extends Trained, Expanded {
  readonly from: Versions;
  readonly params: JsonObject;
  readonly kept: readonly Versions[];
}

/** A round whose steps were sent to the devices. */
export interface SentRound extends Trained {
  readonly params: JsonObject;
  /** True if it was sent before the errors of the previous round were known. */
  readonly speculative: boolean;
  /**
   * True if a single device was sent the whole round and its measure, in order: later work runs after them.
   */
  readonly inOrder: boolean;
  /** Seconds of the round. Throws the error of its steps, or DivergedError. */
  readonly ran: Promise<number>;
  /** Undefined for a round that is not measured. */
  readonly errors: Promise<TrainingErrors> | undefined;
  /** The factors, which are being copied to the host, for a round that was sent with `fetches`. */
  readonly fetched: Promise<StepResults> | undefined;
}

export interface SendOptions {
  /** Copies the factors to the host before they are measured, if one device runs the round in order. */
  readonly fetches: boolean;
  readonly speculative: boolean;
}

/** Sends the steps of a training to its devices: the start, the rounds, their measures and fetches. */
export class Rounds<Factors> {
  readonly training: Training<Factors>;
  readonly options: LoopOptions<Factors>;
  readonly ctx: ExecutionContext;
  readonly #phase: Phase;
  readonly #scope: Scope;
  readonly #clock = new RoundClock();
  /**
   * Resolves when the clock has recorded the latest round and, if the measure was sent with it, the measure.
   */
  #clocked: Promise<unknown> = Promise.resolve();

  constructor(training: Training<Factors>, options: LoopOptions<Factors>, scope: Scope, phase: Phase) {
    [this.training, this.options, this.#phase] = [training, options, phase];
    [this.#scope, this.ctx] = [scope, scope.ctx];
  }

  /**
   * True if a version can be measured for as long as it is kept, because nothing derived from it is freed
   * earlier.
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
    // A device that works in order runs the round and its measure without a pause.
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
   * Fetches the factors of a version. `round`: the round that makes the version; its time does not count as
   * fetching.
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
   * True if the errors are computed from the round's own results. The last round is measured by a pass over
   * the ratings.
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
 * True if all steps are sent at once to one device that works in order. Steps that are sent later then see
 * the versions that these steps make, and cannot change the versions that these read. False if there are
 * transfers from the host.
 */
function isSentAtOnce({ devices }: BoundPlan, steps: readonly Step[]): boolean {
  const device = devices.find(({ place }) => place === steps[0]?.at);
  return steps.every(
    ({ at, ended, do: { kind } }) =>
      device?.inOrder && at === device.place && ended.length === 0 && kind !== 'move' && kind !== 'spill',
  );
}
