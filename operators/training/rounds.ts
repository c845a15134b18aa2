import type { JsonObject } from '../../engine/json.ts';
import type { Phase } from '../../engine/phase.ts';
import type { Versions } from '../../engine/plan/bound-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { expand, expandFree } from '../../engine/run/expand.ts';
import { runSteps, type StepResults } from '../../engine/run/run-steps.ts';
import { contracts } from '../tasks/tasks.ts';
import type { Trained } from './factor-copies.ts';
import type { TrainingErrors } from './loss.ts';
import { expandRound, type RoundAhead } from './round-ahead.ts';
import { withSolved } from './solved-figures.ts';
import type { LoopOptions, Training } from './training.ts';
import { sentAtOnce } from './sent-at-once.ts';

/** A round whose steps were given to the devices. */
export interface SentRound extends Trained {
  readonly params: JsonObject;
  /**
   * One device was sent the round and its measure, whole and in order: what is sent now comes behind them.
   */
  readonly inOrder: boolean;
  /** Seconds of the round. Throws the error of its steps, or DivergedError. */
  readonly ran: Promise<number>;
  /** Undefined for a round that is not measured. */
  readonly errors: Promise<TrainingErrors> | undefined;
  /** The factors on their way to the host, of a round that was sent with `fetches`. */
  readonly fetched: Promise<StepResults> | undefined;
}

export interface SendOptions {
  /** The round, as far as it was expanded for this course of the run. */
  readonly expanded?: RoundAhead | undefined;
  /**
   * Its factors go to the host before they are measured, so that the host's part of that is done beside the
   * measure. Only of a round that one device does in order.
   */
  readonly fetches?: boolean;
}

/**
 * Sends the rounds of a training to its devices, and what measures and fetches the versions that they make.
 */
export class Rounds<Factors> {
  readonly training: Training<Factors>;
  readonly #options: Pick<LoopOptions<Factors>, 'called' | 'maxIter' | 'measuresEnds'>;
  readonly #ctx: ExecutionContext;
  readonly #phase: Phase;
  readonly #stopped = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  /**
   * The moment at which the last steps ended that a device may have worked on before those of the round that
   * runs.
   */
  #freeFrom = 0;

  constructor(
    training: Training<Factors>,
    options: Pick<LoopOptions<Factors>, 'called' | 'maxIter' | 'measuresEnds'>,
    ctx: ExecutionContext,
    phase: Phase,
  ) {
    this.training = training;
    this.#options = options;
    this.#ctx = { ...ctx, signal: AbortSignal.any([ctx.signal, this.#stopped.signal]) };
    this.#phase = phase;
  }

  /** Sends a round, which leaves the versions of `kept` and makes others. */
  send(
    from: Versions,
    number: number,
    kept: readonly Versions[],
    { expanded, fetches = false }: SendOptions,
  ): SentRound {
    const { bound } = this.training;
    const params = this.training.round(number);
    const { steps, versions } =
      expanded?.of(from, params, kept) ?? expandRound(bound, from, { number, params }, kept);
    const state = { number, versions };
    const sent = performance.now();
    const results = this.#follow(this.#run(number, steps));
    const ran = this.#follow(results.then(() => this.#secondsFrom(sent)));
    const inOrder = sentAtOnce(bound, steps);
    const fetched = fetches && inOrder ? this.#follow(this.toHost(state, results)) : undefined;
    const behind = this.#measures(number) ? this.#measureSteps(state, this.#isBrief(number)) : [];
    const measure = () => this.#measure(state, results);
    // A device that works in order goes from the round to its measure without a pause.
    const errors = this.#measures(number) ? this.#follow(inOrder ? measure() : ran.then(measure)) : undefined;
    return { number, versions, params, inOrder: inOrder && sentAtOnce(bound, behind), ran, errors, fetched };
  }

  /** The errors of a version by a pass over the ratings. */
  async exact({ number, versions }: Trained): Promise<TrainingErrors> {
    using _ = this.#ctx.metrics.begin('measure');
    return this.training.errors(
      await this.#follow(runSteps(this.#measureSteps({ number, versions }, false), this.#ctx)),
    );
  }

  async free(versions: Versions, kept: readonly Versions[]): Promise<void> {
    await runSteps(expandFree(this.training.bound, contracts, 'train', versions, kept), this.#ctx);
  }

  /**
   * Waits for the end of a round that was sent behind one which is run again, and frees what it made, except
   * the versions `kept`.
   */
  async discard({ versions, ran, errors, fetched }: SentRound, kept: readonly Versions[]): Promise<void> {
    await Promise.allSettled([ran, errors, fetched]);
    await this.free(versions, kept);
  }

  /** The factors of a version; `behind`: the round that makes it, whose time is not that of the fetch. */
  async toHost({ number, versions }: Trained, behind?: Promise<unknown>): Promise<StepResults> {
    const fetching = this.#follow(
      runSteps(expand(this.training.bound, contracts, 'end', versions, { number }).steps, this.#ctx),
    );
    await behind;
    using _ = this.#ctx.metrics.begin('fetch factors');
    return fetching;
  }

  /** Cancels what is under way, and waits for its end. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#underWay);
  }

  async #run(number: number, steps: Parameters<typeof runSteps>[0]): Promise<StepResults> {
    using _ = this.#ctx.metrics.begin(`${this.#options.called}s`);
    const onProgress = (finished: number, of: number) => this.#phase.progress(number - 1 + finished / of);
    const ran = await runSteps(steps, this.#ctx, { onProgress });
    this.training.check(number, ran);
    return ran;
  }

  #secondsFrom(sent: number): number {
    const now = performance.now();
    const seconds = (now - Math.max(sent, this.#freeFrom)) / 1000;
    this.#freeFrom = now;
    return seconds;
  }

  #measures(number: number): boolean {
    const { measuresEnds = false, maxIter } = this.#options;
    return !measuresEnds || number === 1 || number === maxIter;
  }

  /** The round's own results tell the errors; those of the last round are found by a pass all the same. */
  #isBrief(number: number): boolean {
    return number < this.#options.maxIter && this.training.errorsOfRound !== undefined;
  }

  #measureSteps({ number, versions }: Trained, brief: boolean) {
    return expand(this.training.bound, contracts, 'measure', versions, { number, brief }).steps;
  }

  async #measure(state: Trained, round: Promise<StepResults>): Promise<TrainingErrors> {
    const { training } = this;
    const brief = this.#isBrief(state.number);
    const measuring = this.#follow(runSteps(this.#measureSteps(state, brief), this.#ctx));
    const ran = await round;
    using _ = this.#ctx.metrics.begin('measure');
    const results = await measuring;
    this.#freeFrom = performance.now();
    const told = training.errorsOfRound?.(results, ran);
    if (!brief) return withSolved(training.errors(results), told);
    return told ?? this.exact(state);
  }

  /**
   * Notes that it is under way. Its failure is thrown where it is waited for, or not at all where the run has
   * failed before.
   */
  #follow<Result>(work: Promise<Result>): Promise<Result> {
    const ended = work.then(
      () => undefined,
      () => undefined,
    );
    this.#underWay.add(ended);
    void ended.then(() => this.#underWay.delete(ended));
    return work;
  }
}
