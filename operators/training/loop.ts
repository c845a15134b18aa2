import { DeviceLostError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type Phase, startPhase } from '../../engine/phase.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { Scope } from '../../engine/run/scope.ts';
import { Course, resultOf, type RunFigures } from './course.ts';
import { FactorCopies } from './factor-copies.ts';
import { Rounds } from './rounds.ts';
import { iterationsOf } from './solved-figures.ts';
import type { LoopOptions, LoopResult } from './training.ts';

/**
 * The training loop of ALS and SGD. Runs rounds (iterations, epochs) until the last, or until the stopping
 * rule ends them. Each round is expanded into steps, run, measured, and then kept or run again with smaller
 * steps (course.ts). Meanwhile the next one is prepared (speculation.ts). The factors are copied to the host
 * at intervals. If a device is lost, the run continues from the last copy on the remaining devices, or ends
 * with it. At the checkpoint interval, and after the last round, the copy is also written as a checkpoint.
 */
export async function runLoop<Factors>(
  options: LoopOptions<Factors>,
  ctx: ExecutionContext,
): Promise<LoopResult<Factors>> {
  return new Loop(options, ctx).run();
}

class Loop<Factors> {
  readonly #options: LoopOptions<Factors>;
  readonly #ctx: ExecutionContext;
  readonly #phase: Phase;
  readonly #copies: FactorCopies<Factors>;
  readonly #figures: RunFigures = { iterations: [], measureSeconds: 0, keptOlder: false };

  constructor(options: LoopOptions<Factors>, ctx: ExecutionContext) {
    this.#options = options;
    this.#ctx = ctx;
    this.#copies = new FactorCopies(options);
    this.#phase = startPhase(ctx.events, 'train', `${options.called}s`, options.maxIter);
  }

  async run(): Promise<LoopResult<Factors>> {
    const [{ rule, maxIter, called }, copies, figures] = [this.#options, this.#copies, this.#figures];
    let { devices } = this.#options;
    for (;;) {
      figures.iterations = iterationsOf(copies.last);
      const { stop } = rule.rewind(figures.iterations);
      if (copies.last !== undefined && (stop !== undefined || copies.last.iteration >= maxIter)) {
        this.#phase.end(copies.last.iteration);
        return resultOf(copies.last, figures);
      }
      try {
        const result = await this.#attempt(devices);
        this.#phase.end(figures.iterations.length);
        return result;
      } catch (error) {
        if (!(error instanceof DeviceLostError)) throw error;
        devices = devices.filter(({ place }) => place !== error.details.device);
        if (devices.length === 0 || devices.length === this.#options.devices.length) return this.#lost(error);
        const from = copies.last === undefined ? 'the start' : `${called} ${copies.last.iteration}`;
        this.#ctx.events({
          type: 'warning',
          text: `${error.summary}; training continues from ${from} on ${devices.map(({ place }) => place).join(', ')}`,
        });
      }
    }
  }

  /**
   * Trains on these devices until the end or until one is lost. Starts from the last copy of the factors if
   * there is one.
   */
  async #attempt(devices: readonly DeviceInfo[]): Promise<LoopResult<Factors>> {
    const [options, copies, figures] = [this.#options, this.#copies, this.#figures];
    const training = await options.prepare(devices, copies.last);
    const attempt = async (scope: Scope) => {
      const rounds = new Rounds(training, options, scope, this.#phase);
      const course = await Course.begin({ rounds, copies, figures });
      const trained = await course.train();
      options.fetched?.();
      return trained;
    };
    return Scope.within(this.#ctx, attempt, { measured: true }).finally(() => copies.drop());
  }

  /** After the last device was lost: returns the last copy of the factors as the result, if there is one. */
  async #lost(error: DeviceLostError): Promise<LoopResult<Factors>> {
    const [copy, { called, checkpoints }] = [this.#copies.last, this.#options];
    if (copy === undefined)
      throw new DeviceLostError(
        `${error.summary}; no ${called}'s factors had been copied to the host by then`,
        { ...error.details, phase: 'train' },
      );
    await checkpoints?.ready();
    checkpoints?.write(copy);
    return { ...resultOf(copy, this.#figures), lost: error };
  }
}
