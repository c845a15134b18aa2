import { DeviceLostError, CapacityError } from '../../engine/errors.ts';
import { startPhase } from '../../engine/events.ts';
import { keptOf, type Versions } from '../../engine/plan/bound-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Scope } from '../../engine/run/scope.ts';
import { FactorCopies, isLosable, type State } from './factor-copies.ts';
import type { TrainingErrors } from './loss.ts';
import {
  Rounds,
  type SentRound,
  type Trained,
  type ExpandedRound,
  iterationsOf,
  withSolved,
} from './rounds.ts';
import type { LoopOptions, LoopResult, TrainingIteration, HostCopy, Training, Verdict } from './training.ts';

/**
 * The training loop of ALS and SGD. Runs rounds (iterations, epochs) until the last, or until the stopping
 * rule ends them. Each round is expanded into steps, run, measured, and then kept or run again with smaller
 * steps. Meanwhile the next one is prepared. The factors are copied to the host at intervals. If a device is
 * lost, the run continues from the last copy on the remaining devices, or ends with it. At the checkpoint
 * interval, and after the last round, the copy is also written as a checkpoint.
 */
export async function runLoop<Factors>(
  options: LoopOptions<Factors>,
  ctx: ExecutionContext,
): Promise<LoopResult<Factors>> {
  const { rule, maxIter, called, checkpoints } = options;
  const copies = new FactorCopies(options);
  const phase = startPhase(ctx.events, 'train', `${called}s`, maxIter);
  const figures: RunFigures = { iterations: [], measureSeconds: 0, keptOlder: false };
  let { devices } = options;
  for (;;) {
    figures.iterations = iterationsOf(copies.last);
    const { stop } = rule.rewind(figures.iterations);
    if (copies.last !== undefined && (stop !== undefined || copies.last.iteration >= maxIter)) {
      phase.end(copies.last.iteration);
      return resultOf(copies.last, figures);
    }
    const attempt = async (training: Training<Factors>, scope: Scope) => {
      const rounds = new Rounds(training, options, scope, phase);
      const course = await Attempt.begin({ rounds, copies, figures });
      const trained = await course.train();
      options.fetched?.();
      return trained;
    };
    try {
      const training = await options.prepare(devices, copies.last);
      const result = await Scope.within(ctx, (scope) => attempt(training, scope), {
        measured: true,
      }).finally(() => copies.drop());
      phase.end(figures.iterations.length);
      return result;
    } catch (error) {
      if (!(error instanceof DeviceLostError)) throw error;
      const { last } = copies;
      devices = devices.filter(({ place }) => place !== error.details.device);
      if (devices.length > 0 && devices.length < options.devices.length) {
        const from = last === undefined ? 'the start' : `${called} ${last.iteration}`;
        const left = devices.map(({ place }) => place).join(', ');
        const text = `${error.summary}; training continues from ${from} on ${left}`;
        ctx.events({ type: 'warning', text });
        continue;
      }
      // The last device was lost: the last copy of the factors is the result, if there is one.
      if (last === undefined)
        throw new DeviceLostError(
          `${error.summary}; no ${called}'s factors had been copied to the host by then`,
          { ...error.details, phase: 'train' },
        );
      await checkpoints?.ready();
      checkpoints?.write(last);
      return { ...resultOf(last, figures), lost: error };
    }
  }
}

/** A round (iteration or epoch) that diverges is repeated with smaller steps at most this often. */
export const MOST_RESTARTS = 3;

/**
 * The iterations of a run so far, and figures about it, over all attempts (an attempt ends when a device is
 * lost).
 */
interface RunFigures {
  iterations: TrainingIteration[];
  measureSeconds: number;
  keptOlder: boolean;
}

interface AttemptParts<Factors> {
  readonly rounds: Rounds<Factors>;
  readonly copies: FactorCopies<Factors>;
  readonly figures: RunFigures;
}

/** Result of a run that ends with the factors of a copy in host memory. */
function resultOf<Factors>(copy: HostCopy<Factors>, figures: RunFigures): LoopResult<Factors> {
  const { factors, iteration } = copy.best ?? copy;
  return { ...figures, iterations: copy.iterations, factors, bestIteration: iteration };
}

/**
 * Runs the rounds of one attempt, on a fixed set of devices. Holds the newest and the best factors, and
 * decides from each round's errors whether the round is kept, run again or the last one.
 */
class Attempt<Factors> {
  readonly #rounds: Rounds<Factors>;
  readonly #copies: FactorCopies<Factors>;
  readonly #figures: RunFigures;
  readonly #speculation: Speculation<Factors>;
  readonly #first: number;
  #good: Trained;
  #best: State<Factors>;
  /**
   * Loss with which the next round's loss is compared to detect divergence; if undefined, only an infinite or
   * NaN loss counts.
   */
  #loss: number | undefined;
  #restarts = 0;

  private constructor({ rounds, copies, figures }: AttemptParts<Factors>, good: Trained) {
    [this.#rounds, this.#copies, this.#figures] = [rounds, copies, figures];
    this.#speculation = new Speculation(rounds, copies);
    [this.#first, this.#good, this.#best] = [good.number + 1, good, good];
  }

  /**
   * Starts an attempt on its devices: from the last copy of the factors if there is one, else from initial
   * factors.
   */
  static async begin<Factors>(parts: AttemptParts<Factors>): Promise<Attempt<Factors>> {
    const { rounds, copies, figures } = parts;
    const { bound, slower, startLoss } = rounds.training;
    copies.expect(rounds.training);
    const good = { number: copies.last?.iteration ?? 0, versions: await rounds.start() };
    const course = new Attempt(parts, good);
    const best = copies.last?.best;
    if (best !== undefined) course.#best = { number: best.iteration, factors: best.factors };
    if (!isLosable(bound)) copies.last = undefined;
    const compared = figures.iterations.at(slower === undefined ? 0 : -1)?.loss;
    course.#loss = compared ?? (startLoss === 'measure' ? (await rounds.exact(good)).loss : startLoss);
    return course;
  }

  async train(): Promise<LoopResult<Factors>> {
    while (this.#good.number < this.#rounds.options.maxIter) {
      const result = await this.#round(this.#good.number + 1);
      if (result !== undefined) return result;
    }
    return this.#end();
  }

  /** Sends a round and acts on its errors. Returns the result if the run ends with this round. */
  async #round(number: number): Promise<LoopResult<Factors> | undefined> {
    const [speculation, kept] = [this.#speculation, this.#kept()];
    const round = speculation.take(this.#good.versions, number, kept);
    speculation.send(round);
    if (await speculation.lacksRoom(round, kept)) return undefined;
    const seconds = await round.ran;
    speculation.expand(round);
    const errors = await this.#errorsOf(round);
    if (errors && this.#hasDiverged(errors.loss)) return this.#runAgain(round, kept, errors.loss);
    const { best, stop } = errors ? await this.#report(round, seconds, errors) : { best: true };
    await this.#accept(round, kept, best);
    if (stop !== undefined) this.#rounds.ctx.events({ type: 'note', text: stop });
    if (stop !== undefined || number === this.#rounds.options.maxIter) return this.#end(round);
    await this.#copy();
    return undefined;
  }

  /**
   * Versions of the factors that the next round must not free: the newest and the best, if they may be needed
   * again.
   */
  #kept(): Versions[] {
    const [{ keep }, good, best] = [this.#rounds.training, this.#good, this.#best];
    this.#figures.keptOlder ||= keep.best && 'versions' in best && best.number !== good.number;
    return keptOf(keep, good.versions, 'versions' in best ? best.versions : good.versions);
  }

  /** Errors of a round, with further metrics if requested; undefined if the round is not measured. */
  async #errorsOf(round: SentRound): Promise<TrainingErrors | undefined> {
    const [{ training, options, ctx }, copies] = [this.#rounds, this.#copies];
    const measuring = performance.now();
    const errors = await round.errors;
    if (round.number === this.#first) await training.settled?.(ctx);
    if (errors === undefined) return undefined;
    const testMetrics = await options.measure?.(
      await copies.taken(training, this.#rounds.toHost(round)),
      ctx,
    );
    this.#figures.measureSeconds += (performance.now() - measuring) / 1000;
    // Waits until started checkpoints are written before more work is done, so that a killed process loses
    // one interval at most.
    await options.checkpoints?.ready();
    copies.free(training);
    return testMetrics === undefined ? errors : { ...errors, testMetrics };
  }

  #hasDiverged(loss: number): boolean {
    const { training } = this.#rounds;
    return this.#loss === undefined ? !Number.isFinite(loss) : training.diverged(loss, this.#loss);
  }

  /** Discards the results of a diverged round, to run it again with smaller steps. */
  async #runAgain({ number, versions }: SentRound, kept: Versions[], loss: number): Promise<undefined> {
    const { training, options, ctx } = this.#rounds;
    if (training.slower === undefined || ++this.#restarts > MOST_RESTARTS)
      throw training.divergence(number, loss, this.#loss ?? loss);
    await this.#speculation.discard([versions, ...kept]);
    await this.#rounds.free(versions, kept);
    const rate = training.slower(number);
    ctx.events({
      type: 'warning',
      text: `${options.called} ${number} diverged: the loss is ${loss}, after ${this.#loss}; it is run again from the ${options.called} before with half the learning rate, ${rate}`,
    });
  }

  /** Reports a round that is kept, and returns the stopping rule's verdict. */
  async #report(round: SentRound, seconds: number, errors: TrainingErrors): Promise<Verdict> {
    const { training, options, ctx, hasWholeVersions } = this.#rounds;
    const [{ number, versions, params }, { called, maxIter }] = [round, options];
    const { iterations } = this.#figures;
    const rate = typeof params.rate === 'number' ? { rate: params.rate } : {};
    const rated: TrainingIteration = { iteration: number, seconds, ...rate, ...errors };
    const verdict = options.rule.judge(rated);
    const ends = verdict.stop !== undefined || number === maxIter;
    const report = ends ? withSolved(await this.#exact(rated, versions), rated) : rated;
    iterations.push(report);
    ctx.events({ type: 'iteration', ...(called === 'epoch' ? { called } : {}), of: maxIter, ...report });
    this.#restarts = 0;
    training.accepted?.(errors.loss);
    // If rounds cannot be repeated with smaller steps, every round is compared with the first, else with the
    // one before.
    this.#loss = training.slower === undefined ? (this.#loss ?? errors.loss) : errors.loss;
    // The best iteration so far stays the best, so its errors are now computed exactly, by a pass over the
    // ratings. That is impossible if data derived from its factors were freed.
    const last = iterations.at(-2);
    if (!verdict.best && this.#best === this.#good && last !== undefined && hasWholeVersions)
      iterations.splice(-2, 1, await this.#exact(last, this.#good.versions));
    return verdict;
  }

  /**
   * The report with loss and training error computed by a pass over the ratings, if the solve had computed
   * them.
   */
  async #exact(report: TrainingIteration, versions: Versions): Promise<TrainingIteration> {
    if (!report.fromSolve) return report;
    const { fromSolve: _, ...rest } = report;
    const { loss, trainRmse } = await this.#rounds.exact({ number: report.iteration, versions });
    return { ...rest, loss, ...(trainRmse === undefined ? {} : { trainRmse }) };
  }

  /**
   * Continues from the results of a round, and frees the versions of the factors that are no longer needed.
   */
  async #accept({ number, versions }: SentRound, kept: Versions[], isBest: boolean): Promise<void> {
    this.#good = { number, versions };
    if (isBest) this.#best = this.#good;
    const best = this.#best;
    for (const old of kept)
      await this.#rounds.free(old, 'versions' in best ? [versions, best.versions] : [versions]);
  }

  /**
   * After a round: copies the factors to the host if a copy is due, and frees the version that the next
   * round, if it is already sent, has replaced.
   */
  async #copy(): Promise<void> {
    const [rounds, copies, { sent }] = [this.#rounds, this.#copies, this.#speculation];
    const { options, training } = rounds;
    const [losable, state] = [isLosable(training.bound), this.#state];
    if (sent !== undefined) {
      if (!training.keep.start) await rounds.free(state.good.versions, [sent.versions]);
    } else if (options.checkpoints !== undefined && state.good.number % options.checkpoints.interval === 0) {
      const copy = await copies.make(rounds, state);
      options.checkpoints.write(copy);
      if (losable) copies.last = copy;
    } else if (losable && copies.isDue()) await copies.renew(rounds, state);
  }

  get #state() {
    return { good: this.#good, best: this.#best, iterations: this.#figures.iterations };
  }

  /** Ends the run: fetches the factors to return to the host. `round`: the last one, if it was run. */
  async #end(round?: SentRound): Promise<LoopResult<Factors>> {
    const [rounds, copies, best] = [this.#rounds, this.#copies, this.#best];
    const { checkpoints } = rounds.options;
    if (round?.fetched === undefined && checkpoints !== undefined) {
      const copy = await copies.make(rounds, this.#state);
      checkpoints.write(copy);
      return resultOf(copy, this.#figures);
    }
    const factors = await (round?.fetched === undefined
      ? copies.factorsOf(rounds, best, true)
      : copies.taken(rounds.training, round.fetched, true));
    return { ...this.#figures, factors, bestIteration: best.number };
  }
}

/**
 * Prepares the next round while the current one runs, on the guess that the current round is kept and becomes
 * the best. If only a failure can make the guess wrong, and the device works in order, the next round is sent
 * before the current errors are known, to keep the device busy. Otherwise it is only expanded into steps,
 * while the devices measure. If the guess was wrong, the prepared round is discarded.
 */
class Speculation<Factors> {
  readonly #rounds: Rounds<Factors>;
  readonly #copies: FactorCopies<Factors>;
  #next: ExpandedRound | SentRound | undefined;
  /** False after a speculative round found no room on its device. */
  #hasRoom = true;

  constructor(rounds: Rounds<Factors>, copies: FactorCopies<Factors>) {
    [this.#rounds, this.#copies] = [rounds, copies];
  }

  /** The next round, if it was sent. */
  get sent(): SentRound | undefined {
    return this.#next !== undefined && 'ran' in this.#next ? this.#next : undefined;
  }

  /** Sends the round after this one, if that does not depend on this one's errors. */
  send(round: SentRound): void {
    const next = round.number + 1;
    if (!this.#maySend(round)) return;
    const expanded = this.#rounds.expand(round.versions, next, [round.versions]);
    this.#next = this.#rounds.send(expanded, { fetches: this.#fetches(next), speculative: true });
  }

  /** Expands the round after this one, if it was not sent. */
  expand({ number, versions }: SentRound): void {
    const { training, options } = this.#rounds;
    if (this.#next !== undefined || number >= options.maxIter) return;
    this.#next = this.#rounds.expand(versions, number + 1, keptOf(training.keep, versions, versions));
  }

  /**
   * Returns the next round, and sends it if that has not happened. Steps that were prepared are used if the
   * guess was right.
   */
  take(from: Versions, number: number, kept: readonly Versions[]): SentRound {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined && 'ran' in next) return next;
    const round = next && this.#isFor(next, from, kept) ? next : this.#rounds.expand(from, number, kept);
    return this.#rounds.send(round, { fetches: this.#fetches(number), speculative: false });
  }

  /**
   * Discards the prepared round, and also the round `before` it, if given: waits until their work on devices
   * has ended, and frees their results, except the versions in `kept`.
   */
  async discard(kept: readonly Versions[], before?: SentRound): Promise<void> {
    const rounds = [this.sent, before];
    this.#next = undefined;
    for (const round of rounds) {
      if (round === undefined) continue;
      await Promise.allSettled([round.ran, round.errors, round.fetched]);
      await this.#rounds.free(round.versions, kept);
    }
  }

  /**
   * True if a round that was sent early found no memory, as can happen on a device whose memory size the plan
   * does not know. The round is discarded and sent again later, and from then on no round is sent early.
   */
  async lacksRoom(round: SentRound, kept: readonly Versions[]): Promise<boolean> {
    const { training, options, ctx } = this.#rounds;
    if (!round.speculative || !training.keep.start) return false;
    const error: unknown = await round.ran.then(
      () => undefined,
      (failure: unknown) => failure,
    );
    if (!(error instanceof CapacityError)) return false;
    await this.discard(kept, round);
    this.#hasRoom = false;
    ctx.events({
      type: 'note',
      text:
        `${options.called} ${round.number} did not fit on the device together with the two before it; ` +
        `from here on each ${options.called} waits for the errors of the one before`,
    });
    return true;
  }

  /**
   * True if the round after this one may be sent now. The plan must have room for this round's factors until
   * its errors are known; only a failure may end the run here or change the next round; and no copy of this
   * round's factors to the host is due.
   */
  #maySend({ number, inOrder }: SentRound): boolean {
    const { training, options, hasWholeVersions } = this.#rounds;
    if (number >= options.maxIter || !training.keep.speculates || !this.#hasRoom) return false;
    if (!inOrder || !hasWholeVersions || !this.#isForeseen || this.#copies.isDue()) return false;
    // Writing a checkpoint may take as long as one more round, but must have ended before a second one is
    // sent.
    return options.checkpoints === undefined || number % options.checkpoints.interval > 1;
  }

  /**
   * True for the last round if nothing but a failure can change the result: its factors are then copied to
   * the host without waiting for its errors.
   */
  #fetches(number: number): boolean {
    const { maxIter, checkpoints } = this.#rounds.options;
    return number === maxIter && this.#isForeseen && checkpoints === undefined;
  }

  /**
   * True if errors cannot change the next round: no stopping rule can end the run, every round counts as the
   * best so far, and no further metrics are measured.
   */
  get #isForeseen(): boolean {
    const { rule, measure } = this.#rounds.options;
    return rule.isForeseen && measure === undefined;
  }

  #isFor(round: ExpandedRound, from: Versions, kept: readonly Versions[]): boolean {
    if (round.from !== from || kept.length !== round.kept.length) return false;
    const params = Object.entries(this.#rounds.training.round(round.number));
    return (
      kept.every((one, i) => one === round.kept[i]) &&
      params.every(([name, value]) => value === round.params[name])
    );
  }
}
