import { DeviceLostError, DivergedError } from '../engine/errors.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { type Phase, startPhase } from '../engine/phase.ts';
import type { AlsIteration } from './als.ts';
import { HostCopy } from './host-copy.ts';
import { LearningRate } from './learning-rate.ts';
import type { RatingBlock } from './rating-block.ts';
import { BlocksSgd } from './sgd-blocks.ts';
import type { SgdData } from './sgd-data.ts';
import type { ModelFactors } from './sgd-factors.ts';
import { OneDeviceSgd } from './sgd-one-device.ts';
import { lambdasOf, type SgdParams } from './sgd-params.ts';
import type { SgdSchedule } from './sgd-schedule.ts';
import type { SgdTrainer } from './sgd-trainer.ts';
import { StoppingRule } from './training/stopping-rule.ts';

/** One epoch. `loss` is ALS's J with the λ of each side; biases count in units of the ratings' deviation. */
export interface SgdIteration extends AlsIteration {
  /** γ of the epoch; with AdaGrad α. */
  readonly rate: number;
}

export interface SgdInput {
  readonly data: SgdData;
  readonly schedule: SgdSchedule;
  /** Known pairs of the validation set, by loadSgdTest. */
  readonly test?: RatingBlock;
  /** Factors to go on from, by position; without them training starts at random. */
  readonly start?: ModelFactors;
  /** Seconds between two copies of a GPU's factors to the host, at least; see HostCopy. */
  readonly copySeconds?: number;
}

export interface SgdResult extends ModelFactors {
  readonly iterations: readonly SgdIteration[];
  /** The epoch whose factors these are. */
  readonly bestIteration: number;
  /** Set when the device was lost: these are the factors that had reached the host by then. */
  readonly lost?: DeviceLostError;
}

/** An epoch whose loss is a tenth above the one before, and by a thousandth of σ² Nz, has diverged; less than that is the noise of SGD. */
const DIVERGED = { relative: 1.1, absolute: 1e-3 } as const;
/** Of one epoch. Where one column has most of the ratings, the loss of any order of blocks goes up by as much now and then, and a run of many epochs has several of those. */
const MOST_RESTARTS = 3;

/**
 * Matrix factorization by parallel stochastic gradient descent (cuMF_SGD). Each epoch steps a copy of the factors of the
 * one before; one that diverges is thrown away, the rate is halved, and it is run again, three times at most. Throws DivergedError
 * when that does not help, and DeviceLostError when a device is lost before any factors were copied from it.
 */
export async function trainSgd(input: SgdInput, params: SgdParams, ctx: ExecutionContext): Promise<SgdResult> {
  return input.schedule.deviceBlocks ? trainWith(new BlocksSgd(input, params, ctx), input, params, ctx) : trainWith(new OneDeviceSgd(input, params, ctx), input, params, ctx);
}

/** The same by whatever steps the factors. */
export async function trainWith<Version>(trainer: SgdTrainer<Version>, input: SgdInput, params: SgdParams, ctx: ExecutionContext): Promise<SgdResult> {
  try {
    return await new SgdRun(trainer, input, params, ctx).train();
  } finally {
    trainer.releaseAll();
  }
}

/** What controls a run: epochs and their rate, restarts, the best version, the end, copies on the host. */
class SgdRun<Version> {
  readonly #trainer: SgdTrainer<Version>;
  readonly #input: SgdInput;
  readonly #params: SgdParams;
  readonly #ctx: ExecutionContext;
  readonly #rate: LearningRate;
  readonly #copy: HostCopy<ModelFactors>;
  readonly #iterations: SgdIteration[] = [];
  #phase: Phase | undefined;

  constructor(trainer: SgdTrainer<Version>, input: SgdInput, params: SgdParams, ctx: ExecutionContext) {
    this.#trainer = trainer;
    this.#input = input;
    this.#params = params;
    this.#ctx = ctx;
    this.#copy = new HostCopy(input.copySeconds);
    this.#rate = new LearningRate(params);
  }

  /** Ends with what was copied to the host when the device is lost. */
  async train(): Promise<SgdResult> {
    try {
      return await this.#iterate();
    } catch (error) {
      if (!(error instanceof DeviceLostError)) throw error;
      const { last } = this.#copy;
      if (last === undefined) throw new DeviceLostError(`${error.summary}; no epoch's factors had been copied to the host by then`, { ...error.details, phase: 'train' });
      return { ...last.factors, iterations: this.#iterations.filter(({ iteration }) => iteration <= last.iteration), bestIteration: last.iteration, lost: error };
    }
  }

  async #iterate(): Promise<SgdResult> {
    const { data, test, start } = this.#input;
    const { maxIter } = this.#params;
    const trainer = this.#trainer;
    const rule = new StoppingRule(this.#params, test);
    let good: Version = await trainer.start();
    // All factors 0 would leave Σ r²: no start that is worth anything, and no first epoch, is worse.
    let goodLoss = start === undefined ? data.scale.deviation ** 2 * data.squares : (await trainer.loss(good)).loss;
    let best: { readonly iteration: number; readonly version: Version } = { iteration: 0, version: good };
    this.#phase = startPhase(this.#ctx.events, 'train', 'epochs', maxIter);
    let restarts = 0;
    const noise = DIVERGED.absolute * data.scale.deviation ** 2 * data.block.ratings;
    for (let epoch = 1; epoch <= maxIter; ) {
      const { version, seconds, rate } = await this.#epoch(good, epoch);
      const errors = await trainer.loss(version);
      if (!(errors.loss <= DIVERGED.relative * goodLoss + noise)) {
        trainer.release(version);
        if (++restarts > MOST_RESTARTS) throw this.#diverged(epoch, errors.loss, goodLoss, rate);
        this.#rate.halve();
        this.#ctx.events({ type: 'warning', text: `epoch ${epoch} diverged: the loss is ${errors.loss}, after ${goodLoss}; it is run again from the epoch before with half the learning rate, ${this.#rate.of(epoch)}` });
        continue;
      }
      restarts = 0;
      const report: SgdIteration = { iteration: epoch, seconds, rate, ...errors, ...(await this.#testErrors(version)) };
      this.#iterations.push(report);
      this.#ctx.events({ type: 'iteration', called: 'epoch', of: maxIter, ...report });
      this.#rate.see(errors.loss);
      const verdict = rule.see(report);
      const old = [good, best.version];
      if (verdict.best) best = { iteration: epoch, version };
      good = version;
      goodLoss = errors.loss;
      for (const unused of old) if (unused !== good && unused !== best.version) trainer.release(unused);
      if (verdict.stop !== undefined) {
        this.#ctx.events({ type: 'note', text: verdict.stop });
        break;
      }
      if (trainer.losable && epoch < maxIter) await this.#copy.offer(best.iteration, () => trainer.fetch(best.version));
      epoch++;
    }
    this.#phase.end(this.#iterations.length);
    return { ...(await trainer.fetch(best.version)), iterations: this.#iterations, bestIteration: best.iteration };
  }

  /** A new version of `good`, stepped once on every rating at the rate of the epoch. */
  async #epoch(good: Version, epoch: number): Promise<{ version: Version; seconds: number; rate: number }> {
    const { rank, biases } = this.#params;
    const { data } = this.#input;
    const lambdas = lambdasOf(this.#params);
    const rate = this.#rate.of(epoch);
    const started = performance.now();
    // λ belongs to factors that are 1 / √σ of the model's.
    const lambda = (side: 'users' | 'items') => lambdas[side] / data.scale.deviation;
    const params = { rank, biases, rate, rowLambda: lambda(data.rows.name), columnLambda: lambda(data.columns.name), adaptive: this.#params.rate === 'adagrad' };
    const version = await this.#trainer.epoch(good, params, epoch, (part) => this.#phase?.progress(epoch - 1 + part));
    return { version, seconds: (performance.now() - started) / 1000, rate };
  }

  async #testErrors(version: Version): Promise<Pick<SgdIteration, 'testRmse' | 'testMae'>> {
    const { test, data } = this.#input;
    if (test === undefined || test.ratings === 0) return {};
    const { squared, absolute, count } = await this.#trainer.testErrors(version);
    const { deviation } = data.scale;
    return { testRmse: deviation * Math.sqrt(squared / count), testMae: (deviation * absolute) / count };
  }

  #diverged(epoch: number, loss: number, before: number, rate: number): DivergedError {
    return new DivergedError(`epoch ${epoch}: the loss is ${loss}, after ${before} before it, and so it was with ${MOST_RESTARTS} halved learning rates, the last of them ${rate}`, {
      phase: 'train',
      advice: `Lower learningRate (α), which is ${this.#params.learningRate}, or raise regParam (λ), which is ${this.#params.regParam}`,
    });
  }
}
