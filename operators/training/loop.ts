import { DeviceLostError } from '../../engine/errors.ts';
import type { Partition } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type Phase, startPhase } from '../../engine/phase.ts';
import { keptOf, type Versions } from '../../engine/plan/bound-plan.ts';
import { expand, expandFree } from '../../engine/run/expand.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import { runSteps, type StepResults } from '../../engine/run/run-steps.ts';
import type { Step } from '../../engine/run/step.ts';
import { together } from '../../engine/threads/together.ts';
import { contracts } from '../tasks/tasks.ts';
import type { HostCopy } from './host-copy.ts';
import type { TrainingIteration } from './iteration.ts';
import type { TrainingErrors } from './loss.ts';
import { handedBytes } from './planned-checkpoints.ts';
import { expandAhead, expandRound, type RoundAhead } from './round-ahead.ts';
import { iterationsOf, withSolved } from './solved-figures.ts';
import { worksInOrder } from './works-in-order.ts';
import type { LoopOptions, LoopResult, Training } from './training.ts';

/** Rounds that are run again one after the other, at most. */
export const MOST_RESTARTS = 3;

/** A copy to the host costs at most this part of a run's time. */
const COPY_SHARE = 0.05;

/** Bytes of a copy a second, before one was made. */
const COPY_RATE = 1.7e9;

/** Least seconds between two copies: about the work that the loss of a device may cost. */
const COPY_SECONDS = 2;

/**
 * Runs rounds until the last, or until the stopping rule ends them: the one loop of all algorithms. Each round is expanded, run,
 * measured, and kept or run again with smaller steps. The factors are copied to the host now and then; when a device is lost, the run
 * goes on from that copy on those that are left, or ends with it. Every so many rounds, and behind the last, the copy is a checkpoint.
 */
export async function runLoop<Factors>(options: LoopOptions<Factors>, ctx: ExecutionContext): Promise<LoopResult<Factors>> {
  return new Loop(options, ctx).run();
}

/** The factors after a round: versions on devices, or a copy in host memory where a run goes on from an earlier one. */
type State<Factors> = Trained | { readonly number: number; readonly factors: Factors };

/** The versions on devices after a round. */
interface Trained {
  readonly number: number;
  readonly versions: Versions;
}

class Loop<Factors> {
  readonly #options: LoopOptions<Factors>;
  /** The context of the current attempt, whose devices hold its partitions. */
  #ctx: ExecutionContext;
  readonly #phase: Phase;
  #iterations: TrainingIteration[] = [];
  #copy: HostCopy<Factors> | undefined;
  #copied = performance.now();
  readonly #copies: (readonly Partition[])[] = [];
  #wait: number;
  #keptOlder = false;

  constructor(options: LoopOptions<Factors>, ctx: ExecutionContext) {
    this.#options = options;
    this.#ctx = ctx;
    this.#wait = options.copySeconds ?? COPY_SECONDS;
    this.#copy = options.checkpoints?.resume();
    this.#phase = startPhase(ctx.events, 'train', `${options.called}s`, options.maxIter);
  }

  async run(): Promise<LoopResult<Factors>> {
    const [{ rule, maxIter }, ctx] = [this.#options, this.#ctx];
    let { devices } = this.#options;
    for (;;) {
      this.#iterations = iterationsOf(this.#copy);
      const { stop } = rule.rewind(this.#iterations);
      if (this.#copy !== undefined && (stop !== undefined || this.#copy.iteration >= maxIter)) {
        this.#phase.end(this.#copy.iteration);
        return this.#endOf(this.#copy);
      }
      try {
        const training = await this.#options.prepare(devices, this.#copy);
        const result = await Holdings.measured(ctx, (held) => {
          this.#ctx = held;
          return this.#train(training).finally(() => this.#dropCopies());
        });
        this.#phase.end(this.#iterations.length);
        return result;
      } catch (error) {
        if (!(error instanceof DeviceLostError)) throw error;
        devices = devices.filter(({ place }) => place !== error.details.device);
        if (devices.length === 0 || devices.length === this.#options.devices.length) return this.#lost(error);
        const from = this.#copy === undefined ? 'the start' : `${this.#options.called} ${this.#copy.iteration}`;
        this.#ctx.events({ type: 'warning', text: `${error.summary}; training goes on from ${from} on ${devices.map(({ place }) => place).join(', ')}` });
      }
    }
  }

  async #lost(error: DeviceLostError): Promise<LoopResult<Factors>> {
    const copy = this.#copy;
    if (copy === undefined) throw new DeviceLostError(`${error.summary}; no ${this.#options.called}'s factors had been copied to the host by then`, { ...error.details, phase: 'train' });
    await this.#options.checkpoints?.ready();
    this.#options.checkpoints?.write(copy);
    return { ...this.#endOf(copy), lost: error };
  }

  /** The result of a run that ends with a copy. */
  #endOf(copy: HostCopy<Factors>): LoopResult<Factors> {
    const { factors, iteration } = copy.best ?? copy;
    return { factors, iterations: copy.iterations, bestIteration: iteration, keptOlder: this.#keptOlder };
  }

  async #train(training: Training<Factors>): Promise<LoopResult<Factors>> {
    const { maxIter, rule, called, checkpoints } = this.#options;
    const { keep } = training;
    const losable = training.bound.devices.some(({ ownMemory }) => ownMemory);
    if (losable && this.#options.copySeconds === undefined) this.#wait = Math.max(this.#wait, handedBytes(training.bound.phases.end, training.bound.datasets) / COPY_RATE / COPY_SHARE);
    const first = this.#copy?.iteration ?? 0;
    let good = { number: first, versions: await this.#start(training) };
    let best: State<Factors> = this.#copy?.best === undefined ? good : { number: this.#copy.best.iteration, factors: this.#copy.best.factors };
    if (!losable) this.#copy = undefined;
    let goodLoss = this.#lossOfCopy(training) ?? (training.startLoss === 'measure' ? (await this.#measure(training, good)).loss : training.startLoss);
    let restarts = 0;
    let ahead: RoundAhead | undefined;
    for (let number = first + 1; number <= maxIter; ) {
      const kept = keptOf(keep, good.versions, 'versions' in best ? best.versions : good.versions);
      this.#keptOlder ||= keep.best && 'versions' in best && best.number !== good.number;
      const started = performance.now();
      const params = training.round(number);
      const round = ahead?.of(good.versions, params, kept) ?? expandRound(training.bound, good.versions, { number, params }, kept);
      const { versions } = round;
      const measures = this.#measures(number);
      const running = this.#round(training, round.steps, number);
      // A device that works in order goes from the round to its measure without a pause.
      const behind = measures && worksInOrder(training.bound, round.steps) ? this.#measure(training, { number, versions }, running) : undefined;
      behind?.catch(() => undefined);
      const ran = await running.catch(async (error: unknown) => {
        await Promise.allSettled([behind]);
        throw error;
      });
      const seconds = (performance.now() - started) / 1000;
      const measuring = behind ?? (measures ? this.#measure(training, { number, versions }, Promise.resolve(ran)) : undefined);
      // Expands the next round while the devices measure; most rounds take the expected course.
      ahead = number < maxIter ? expandAhead(training, versions, number + 1) : undefined;
      const measured = await measuring;
      if (number === first + 1) await training.settled?.(this.#ctx);
      if (measured === undefined) {
        best = good = { number, versions };
        for (const old of kept) await this.#free(training, old, [versions]);
        if (losable) await this.#offerCopy(training, good, best);
        number++;
        continue;
      }
      const testMetrics = await this.#options.measure?.(await this.#fetch(training, { number, versions }), this.#ctx);
      const errors = testMetrics === undefined ? measured : { ...measured, testMetrics };
      // A kill loses an interval at most.
      await checkpoints?.ready();
      if (!losable) this.#dropCopies();
      if (goodLoss !== undefined ? training.diverged(errors.loss, goodLoss) : !Number.isFinite(errors.loss)) {
        if (training.slower === undefined || ++restarts > MOST_RESTARTS) throw training.divergence(number, errors.loss, goodLoss ?? errors.loss);
        await this.#free(training, versions, kept);
        const rate = training.slower(number);
        this.#ctx.events({ type: 'warning', text: `${called} ${number} diverged: the loss is ${errors.loss}, after ${goodLoss}; it is run again from the ${called} before with half the learning rate, ${rate}` });
        continue;
      }
      restarts = 0;
      const rated: TrainingIteration = { iteration: number, seconds, ...(typeof params.rate === 'number' ? { rate: params.rate } : {}), ...errors };
      const verdict = rule.see(rated);
      const ends = verdict.stop !== undefined || number === maxIter;
      const report = ends ? withSolved(await this.#exact(training, rated, versions), rated) : rated;
      this.#iterations.push(report);
      this.#ctx.events({ type: 'iteration', ...(called === 'epoch' ? { called } : {}), of: maxIter, ...report });
      training.accepted?.(errors.loss);
      // Without restarts a round is compared with the first.
      goodLoss = training.slower === undefined ? (goodLoss ?? errors.loss) : errors.loss;
      // The best so far stays the best, and is kept with exact figures, unless copies that were made from it are gone.
      const last = this.#iterations.at(-2);
      if (!verdict.best && best === good && last !== undefined && training.bound.datasets.every(({ derived }) => !derived)) this.#iterations.splice(-2, 1, await this.#exact(training, last, good.versions));
      good = { number, versions };
      if (verdict.best) best = good;
      for (const old of kept) await this.#free(training, old, [good.versions, ...('versions' in best ? [best.versions] : [])]);
      if (verdict.stop !== undefined) this.#ctx.events({ type: 'note', text: verdict.stop });
      if (checkpoints !== undefined && (ends || number % checkpoints.interval === 0)) {
        const copy = await this.#copyOf(training, good, best);
        checkpoints.write(copy);
        if (ends) return this.#endOf(copy);
        if (losable) this.#copy = copy;
      } else if (losable && !ends) await this.#offerCopy(training, good, best);
      if (ends) break;
      number++;
    }
    return { factors: await this.#factorsOf(training, best, true), iterations: this.#iterations, bestIteration: best.number, keptOlder: this.#keptOlder };
  }

  #measures(number: number): boolean {
    const { measuresEnds = false, maxIter } = this.#options;
    return !measuresEnds || number === 1 || number === maxIter;
  }

  /** The loss that the round behind the copy is compared with. */
  #lossOfCopy({ slower }: Training<Factors>): number | undefined {
    return (slower === undefined ? this.#iterations[0] : this.#iterations.at(-1))?.loss;
  }

  async #round(training: Training<Factors>, steps: readonly Step[], number: number): Promise<StepResults> {
    using _ = this.#ctx.metrics.begin(`${this.#options.called}s`);
    const onProgress = (finished: number, of: number) => this.#phase.progress(number - 1 + finished / of);
    const ran = await runSteps(steps, this.#ctx, { onProgress });
    training.check(number, ran);
    return ran;
  }

  /** The errors of a version; `round`: the results of the round that makes it, which may tell them. Those of the last round are found by a pass all the same. */
  async #measure(training: Training<Factors>, { number, versions }: Trained, round?: Promise<StepResults>): Promise<TrainingErrors> {
    const { errorsOfRound } = training;
    const measured = (brief: boolean) => runSteps(expand(training.bound, contracts, 'measure', versions, { number, brief }).steps, this.#ctx);
    const brief = number < this.#options.maxIter && round !== undefined && errorsOfRound !== undefined;
    const measuring = measured(brief);
    // Told below, or not at all where the round fails.
    measuring.catch(() => undefined);
    const ran = await round?.catch(async (error: unknown) => {
      await Promise.allSettled([measuring]);
      throw error;
    });
    using _ = this.#ctx.metrics.begin('measure');
    const results = await measuring;
    const told = ran && errorsOfRound?.(results, ran);
    if (!brief) return withSolved(training.errors(results), told);
    return told ?? training.errors(await measured(false));
  }

  /** The report with loss and training error by a pass over the ratings. */
  async #exact(training: Training<Factors>, report: TrainingIteration, versions: Versions): Promise<TrainingIteration> {
    if (!report.fromSolve) return report;
    const { fromSolve: _, ...rest } = report;
    const { loss, trainRmse } = await this.#measure(training, { number: report.iteration, versions });
    return { ...rest, loss, ...(trainRmse === undefined ? {} : { trainRmse }) };
  }

  async #start(training: Training<Factors>): Promise<Versions> {
    using _ = this.#ctx.metrics.begin('start');
    const { steps, versions } = expand(training.bound, contracts, 'start', {});
    await together(() => runSteps(steps, this.#ctx, { given: training.given.splice(0) }), async () => training.starting?.(this.#ctx));
    return versions;
  }

  async #free(training: Training<Factors>, versions: Versions, kept: readonly Versions[]): Promise<void> {
    await runSteps(expandFree(training.bound, contracts, 'train', versions, kept), this.#ctx);
  }

  async #fetch(training: Training<Factors>, { number, versions }: Trained, last = false): Promise<Factors> {
    using _ = this.#ctx.metrics.begin('fetch factors');
    const results = await runSteps(expand(training.bound, contracts, 'end', versions, { number }).steps, this.#ctx);
    const losable = training.bound.devices.some(({ ownMemory }) => ownMemory);
    if (losable || (this.#options.checkpoints !== undefined && !last)) this.#countCopy(results.handed);
    return training.factors(results, last);
  }

  #dropCopies(): void {
    this.#copies.splice(0).forEach(dropCopy);
  }

  /** Counts a copy of the factors: the last one, and the one before it, are alive. */
  #countCopy(partitions: readonly Partition[]): void {
    if (this.#copies.length === 2) this.#copies.splice(0, 1).forEach(dropCopy);
    for (const partition of partitions) hostMeter.hold(partition);
    this.#copies.push(partitions);
  }

  /** The factors of a state; those that are in host memory are not fetched again. */
  async #factorsOf(training: Training<Factors>, state: State<Factors>, last = false): Promise<Factors> {
    const copied = [this.#copy, this.#copy?.best].find((copy) => copy?.iteration === state.number);
    return copied?.factors ?? ('versions' in state ? this.#fetch(training, state, last) : state.factors);
  }

  /** Copies the factors to the host when the loss of a device could cost much work; longer copies are made less often. */
  async #offerCopy(training: Training<Factors>, good: State<Factors>, best: State<Factors>): Promise<void> {
    const start = performance.now();
    if (start - this.#copied < 1000 * this.#wait) return;
    this.#copy = await this.#copyOf(training, good, best);
    this.#wait = Math.max(this.#options.copySeconds ?? COPY_SECONDS, (this.#copied - start) / 1000 / COPY_SHARE);
  }

  async #copyOf(training: Training<Factors>, good: State<Factors>, best: State<Factors>): Promise<HostCopy<Factors>> {
    const kept = best.number === good.number ? undefined : { iteration: best.number, factors: await this.#factorsOf(training, best) };
    const factors = await this.#factorsOf(training, good);
    this.#copied = performance.now();
    return { iteration: good.number, factors, ...(kept && { best: kept }), iterations: [...this.#iterations], ...(training.course && { course: training.course() }) };
  }
}

function dropCopy(partitions: readonly Partition[]): void {
  for (const partition of partitions) hostMeter.drop(partition);
}
