import { CapacityError, DeviceLostError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type Phase, startPhase } from '../../engine/phase.ts';
import { keptOf, type Versions } from '../../engine/plan/bound-plan.ts';
import { expand } from '../../engine/run/expand.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { together } from '../../engine/threads/together.ts';
import { contracts } from '../tasks/tasks.ts';
import { FactorCopies, isLosable, type State } from './factor-copies.ts';
import type { HostCopy } from './host-copy.ts';
import type { TrainingIteration } from './iteration.ts';
import { expandAhead, type RoundAhead } from './round-ahead.ts';
import { Rounds, type SentRound } from './rounds.ts';
import { iterationsOf, withSolved } from './solved-figures.ts';
import type { LoopOptions, LoopResult, Training } from './training.ts';

/** Rounds that are run again one after the other, at most. */
export const MOST_RESTARTS = 3;

/**
 * Runs rounds until the last, or until the stopping rule ends them: the one loop of all algorithms. Each
 * round is expanded, run, measured, and kept or run again with smaller steps. Where only a failure can change
 * the course of a run, a device that works in order is sent the next round before the errors of the present
 * one are known, so that it does not stand still meanwhile. The factors are copied to the host now and then;
 * when a device is lost, the run goes on from that copy on those that are left, or ends with it. Every so
 * many rounds, and behind the last, the copy is a checkpoint.
 *
 */
export async function runLoop<Factors>(
  options: LoopOptions<Factors>,
  ctx: ExecutionContext,
): Promise<LoopResult<Factors>> {
  return new Loop(options, ctx).run();
}

class Loop<Factors> {
  readonly #options: LoopOptions<Factors>;
  /** The context of the current attempt, whose devices hold its partitions. */
  #ctx: ExecutionContext;
  readonly #phase: Phase;
  #iterations: TrainingIteration[] = [];
  readonly #copies: FactorCopies<Factors>;
  #keptOlder = false;
  #measureSeconds = 0;
  /** False once a round that was sent ahead found no room on its device. */
  #hasRoomAhead = true;

  constructor(options: LoopOptions<Factors>, ctx: ExecutionContext) {
    this.#options = options;
    this.#ctx = ctx;
    this.#copies = new FactorCopies(options);
    this.#phase = startPhase(ctx.events, 'train', `${options.called}s`, options.maxIter);
  }

  async run(): Promise<LoopResult<Factors>> {
    const [{ rule, maxIter }, ctx, copies] = [this.#options, this.#ctx, this.#copies];
    let { devices } = this.#options;
    for (;;) {
      this.#iterations = iterationsOf(copies.last);
      const { stop } = rule.rewind(this.#iterations);
      if (copies.last !== undefined && (stop !== undefined || copies.last.iteration >= maxIter)) {
        this.#phase.end(copies.last.iteration);
        return this.#endOf(copies.last);
      }
      try {
        const training = await this.#options.prepare(devices, copies.last);
        const result = await Holdings.measured(ctx, async (held) => {
          this.#ctx = held;
          const rounds = new Rounds(training, this.#options, held, this.#phase);
          try {
            const trained = await this.#train(rounds);
            this.#options.fetched?.();
            return trained;
          } finally {
            await rounds.stop();
            copies.drop();
          }
        });
        this.#phase.end(this.#iterations.length);
        return result;
      } catch (error) {
        if (!(error instanceof DeviceLostError)) throw error;
        devices = devices.filter(({ place }) => place !== error.details.device);
        if (devices.length === 0 || devices.length === this.#options.devices.length) return this.#lost(error);
        const from =
          copies.last === undefined ? 'the start' : `${this.#options.called} ${copies.last.iteration}`;
        this.#ctx.events({
          type: 'warning',
          text: `${error.summary}; training goes on from ${from} on ${devices.map(({ place }) => place).join(', ')}`,
        });
      }
    }
  }

  async #lost(error: DeviceLostError): Promise<LoopResult<Factors>> {
    const copy = this.#copies.last;
    if (copy === undefined)
      throw new DeviceLostError(
        `${error.summary}; no ${this.#options.called}'s factors had been copied to the host by then`,
        { ...error.details, phase: 'train' },
      );
    await this.#options.checkpoints?.ready();
    this.#options.checkpoints?.write(copy);
    return { ...this.#endOf(copy), lost: error };
  }

  /** The result of a run that ends with a copy. */
  #endOf(copy: HostCopy<Factors>): LoopResult<Factors> {
    const { factors, iteration } = copy.best ?? copy;
    return {
      factors,
      iterations: copy.iterations,
      bestIteration: iteration,
      measureSeconds: this.#measureSeconds,
      keptOlder: this.#keptOlder,
    };
  }

  async #train(rounds: Rounds<Factors>): Promise<LoopResult<Factors>> {
    const { maxIter, rule, called, checkpoints } = this.#options;
    const { training } = rounds;
    const { keep } = training;
    const copies = this.#copies;
    const losable = isLosable(training.bound);
    copies.expect(training);
    const first = copies.last?.iteration ?? 0;
    let good = { number: first, versions: await this.#start(training) };
    let best: State<Factors> =
      copies.last?.best === undefined
        ? good
        : { number: copies.last.best.iteration, factors: copies.last.best.factors };
    if (!losable) copies.last = undefined;
    let goodLoss =
      this.#lossOfCopy(training) ??
      (training.startLoss === 'measure' ? (await rounds.exact(good)).loss : training.startLoss);
    let restarts = 0;
    let expanded: RoundAhead | undefined;
    let next: SentRound | undefined;
    for (let number = first + 1; number <= maxIter;) {
      const kept =
        next === undefined
          ? keptOf(keep, good.versions, 'versions' in best ? best.versions : good.versions)
          : keep.start
            ? [good.versions]
            : [];
      this.#keptOlder ||= keep.best && 'versions' in best && best.number !== good.number;
      const wasAhead = next !== undefined;
      const round: SentRound =
        next ?? rounds.send(good.versions, number, kept, { expanded, fetches: this.#fetches(number) });
      const { versions, params } = round;
      next = this.#goesAhead(training, round)
        ? rounds.send(versions, number + 1, [versions], { fetches: this.#fetches(number + 1) })
        : undefined;
      if (wasAhead && keep.start && (await lacksRoom(round.ran))) {
        for (const one of [next, round]) if (one !== undefined) await rounds.discard(one, [good.versions]);
        next = undefined;
        this.#hasRoomAhead = false;
        this.#ctx.events({
          type: 'note',
          text: `${called} ${number} found no room on the device beside the two before it; from here on each ${called} waits for the errors of the one before`,
        });
        continue;
      }
      const seconds = await round.ran;
      // Expands the next round while the devices measure; most rounds take the expected course.
      expanded =
        next === undefined && number < maxIter ? expandAhead(training, versions, number + 1) : undefined;
      const measuring = performance.now();
      const measured = await round.errors;
      if (number === first + 1) await training.settled?.(this.#ctx);
      if (measured === undefined) {
        best = good = { number, versions };
        for (const old of kept) await rounds.free(old, [versions]);
        if (next !== undefined && !keep.start) await rounds.free(versions, [next.versions]);
        else if (next === undefined && losable && copies.isDue())
          await copies.renew(rounds, good, best, this.#iterations);
        number++;
        continue;
      }
      const testMetrics = await this.#options.measure?.(
        await copies.taken(training, rounds.toHost(round)),
        this.#ctx,
      );
      const errors = testMetrics === undefined ? measured : { ...measured, testMetrics };
      this.#measureSeconds += (performance.now() - measuring) / 1000;
      // A kill loses an interval at most.
      await checkpoints?.ready();
      if (!losable) copies.drop();
      if (goodLoss !== undefined ? training.diverged(errors.loss, goodLoss) : !Number.isFinite(errors.loss)) {
        if (training.slower === undefined || ++restarts > MOST_RESTARTS)
          throw training.divergence(number, errors.loss, goodLoss ?? errors.loss);
        if (next !== undefined) await rounds.discard(next, [versions, ...kept]);
        next = undefined;
        await rounds.free(versions, kept);
        const rate = training.slower(number);
        this.#ctx.events({
          type: 'warning',
          text: `${called} ${number} diverged: the loss is ${errors.loss}, after ${goodLoss}; it is run again from the ${called} before with half the learning rate, ${rate}`,
        });
        continue;
      }
      restarts = 0;
      const rated: TrainingIteration = {
        iteration: number,
        seconds,
        ...(typeof params.rate === 'number' ? { rate: params.rate } : {}),
        ...errors,
      };
      const verdict = rule.see(rated);
      const ends = verdict.stop !== undefined || number === maxIter;
      const report = ends ? withSolved(await this.#exact(rounds, rated, versions), rated) : rated;
      this.#iterations.push(report);
      this.#ctx.events({
        type: 'iteration',
        ...(called === 'epoch' ? { called } : {}),
        of: maxIter,
        ...report,
      });
      training.accepted?.(errors.loss);
      // Without restarts a round is compared with the first.
      goodLoss = training.slower === undefined ? (goodLoss ?? errors.loss) : errors.loss;
      // The best so far stays the best, and is kept with exact figures, unless copies that were made from it
      // are gone.
      const last = this.#iterations.at(-2);
      if (!verdict.best && best === good && last !== undefined && isWhole(training))
        this.#iterations.splice(-2, 1, await this.#exact(rounds, last, good.versions));
      good = { number, versions };
      if (verdict.best) best = good;
      for (const old of kept)
        await rounds.free(old, [good.versions, ...('versions' in best ? [best.versions] : [])]);
      if (verdict.stop !== undefined) this.#ctx.events({ type: 'note', text: verdict.stop });
      if (ends && round.fetched !== undefined)
        return this.#result(await copies.taken(training, round.fetched, true), number);
      if (next !== undefined && !keep.start) await rounds.free(versions, [next.versions]);
      else if (
        next === undefined &&
        checkpoints !== undefined &&
        (ends || number % checkpoints.interval === 0)
      ) {
        const copy = await copies.make(rounds, good, best, this.#iterations);
        checkpoints.write(copy);
        if (ends) return this.#endOf(copy);
        if (losable) copies.last = copy;
      } else if (next === undefined && losable && !ends && copies.isDue())
        await copies.renew(rounds, good, best, this.#iterations);
      if (ends) break;
      number++;
    }
    return this.#result(await copies.factorsOf(rounds, best, true), best.number);
  }

  #result(factors: Factors, bestIteration: number): LoopResult<Factors> {
    return {
      factors,
      iterations: this.#iterations,
      bestIteration,
      measureSeconds: this.#measureSeconds,
      keptOlder: this.#keptOlder,
    };
  }

  /**
   * True where the next round is sent before the errors of this one are known. The plan has room for the
   * version that this one makes, which then stays until its errors are known; nothing but a failure ends the
   * run here or changes the parameters of the next round; and no copy of its factors is due. What was sent
   * behind a round that is run again is thrown away.
   *
   */
  #goesAhead(training: Training<Factors>, { number, inOrder }: SentRound): boolean {
    const { maxIter, rule, checkpoints, measure } = this.#options;
    if (number >= maxIter || !training.keep.ahead || !this.#hasRoomAhead || !inOrder || !isWhole(training))
      return false;
    if (!rule.isForeseen || measure !== undefined || this.#copies.isDue()) return false;
    // A checkpoint is written while one round runs, not two.
    return checkpoints === undefined || number % checkpoints.interval > 1;
  }

  /** True where a round is the last, and its factors the run's, unless it fails. */
  #fetches(number: number): boolean {
    const { maxIter, rule, checkpoints, measure } = this.#options;
    return number === maxIter && rule.isForeseen && checkpoints === undefined && measure === undefined;
  }

  /** The loss that the round behind the copy is compared with. */
  #lossOfCopy({ slower }: Training<Factors>): number | undefined {
    return (slower === undefined ? this.#iterations[0] : this.#iterations.at(-1))?.loss;
  }

  /** The report with loss and training error by a pass over the ratings. */
  async #exact(
    rounds: Rounds<Factors>,
    report: TrainingIteration,
    versions: Versions,
  ): Promise<TrainingIteration> {
    if (!report.fromSolve) return report;
    const { fromSolve: _, ...rest } = report;
    const { loss, trainRmse } = await rounds.exact({ number: report.iteration, versions });
    return { ...rest, loss, ...(trainRmse === undefined ? {} : { trainRmse }) };
  }

  async #start(training: Training<Factors>): Promise<Versions> {
    using _ = this.#ctx.metrics.begin('start');
    const { steps, versions } = expand(training.bound, contracts, 'start', {});
    await together(
      () => runSteps(steps, this.#ctx, { given: training.given.splice(0) }),
      async () => training.starting?.(this.#ctx),
    );
    return versions;
  }
}

/**
 * True where a round failed for want of memory, as it may on a device whose memory the plan does not know.
 */
function lacksRoom(ran: Promise<unknown>): Promise<boolean> {
  return ran.then(
    () => false,
    (error) => error instanceof CapacityError,
  );
}

/**
 * True where a version can be measured as long as it is kept: nothing is derived from it that goes with the
 * next one's.
 */
function isWhole({ bound }: Training<unknown>): boolean {
  return bound.datasets.every(({ derived }) => !derived);
}
