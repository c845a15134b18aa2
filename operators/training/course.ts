import { keptOf, type Versions } from '../../engine/plan/bound-plan.ts';
import { type FactorCopies, isLosable, type State } from './factor-copies.ts';
import type { HostCopy } from './host-copy.ts';
import type { TrainingIteration } from './iteration.ts';
import type { TrainingErrors } from './loss.ts';
import type { Rounds, SentRound, Trained } from './rounds.ts';
import { withSolved } from './solved-figures.ts';
import { Speculation } from './speculation.ts';
import type { Verdict } from './stopping-rule.ts';
import type { LoopResult } from './training.ts';

/** A round (iteration or epoch) that diverges is repeated with smaller steps at most this often. */
export const MOST_RESTARTS = 3;

/**
 * The iterations of a run so far, and figures about it, over all attempts (an attempt ends when a device is
 * lost).
 */
export interface RunFigures {
  iterations: TrainingIteration[];
  measureSeconds: number;
  keptOlder: boolean;
}

interface CourseParts<Factors> {
  readonly rounds: Rounds<Factors>;
  readonly copies: FactorCopies<Factors>;
  readonly figures: RunFigures;
}

/** Result of a run that ends with the factors of a copy in host memory. */
export function resultOf<Factors>(copy: HostCopy<Factors>, figures: RunFigures): LoopResult<Factors> {
  const { factors, iteration } = copy.best ?? copy;
  return { ...figures, iterations: copy.iterations, factors, bestIteration: iteration };
}

/**
 * Runs the rounds of one attempt, on a fixed set of devices. Holds the newest and the best factors, and
 * decides from each round's errors whether the round is kept, run again or the last one.
 */
export class Course<Factors> {
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

  private constructor({ rounds, copies, figures }: CourseParts<Factors>, good: Trained) {
    [this.#rounds, this.#copies, this.#figures] = [rounds, copies, figures];
    this.#speculation = new Speculation(rounds, copies);
    [this.#first, this.#good, this.#best] = [good.number + 1, good, good];
  }

  /**
   * Starts an attempt on its devices: from the last copy of the factors if there is one, else from initial
   * factors.
   */
  static async begin<Factors>(parts: CourseParts<Factors>): Promise<Course<Factors>> {
    const { rounds, copies, figures } = parts;
    const { bound, slower, startLoss } = rounds.training;
    copies.expect(rounds.training);
    const good = { number: copies.last?.iteration ?? 0, versions: await rounds.start() };
    const course = new Course(parts, good);
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
