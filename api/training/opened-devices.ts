import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Session } from '../session.ts';
import { type DeviceParams, trainingDevice } from './training-device.ts';

/** The devices of a training, which may still be opened while its ratings are read. */
export class OpenedDevices {
  readonly #session: Session;
  readonly #params: DeviceParams;
  readonly #ctx: ExecutionContext;
  #told = false;

  private constructor(session: Session, params: DeviceParams, ctx: ExecutionContext) {
    this.#session = session;
    this.#params = params;
    this.#ctx = ctx;
  }

  /** Waits for the devices where `needed`, or where the parameters may not suit them, so that this shows before ratings are read. Throws as `wait` does. */
  static async of(session: Session, params: DeviceParams, ctx: ExecutionContext, needed: boolean): Promise<OpenedDevices> {
    const devices = new OpenedDevices(session, params, ctx);
    const { precision = 'auto', kernel, schedule = 'auto' } = params;
    if (needed || !session.opening || precision !== 'auto' || kernel !== undefined || schedule !== 'auto') await devices.wait();
    return devices;
  }

  /** Waits until they are open, and tells which they are. Throws UsageError for `gpu` without a GPU, and for a parameter that cannot act on them. */
  async wait(): Promise<void> {
    await this.#session.opened(this.#ctx.events);
    if (this.#told) return;
    this.#told = true;
    this.#ctx.events({ type: 'note', text: trainingDevice(this.#session.device, this.#ctx.executor, this.#params).text });
  }

  /** Runs work that needs no GPU, then waits for the devices. Work is ended where they cannot be opened. */
  async during<Result>(ctx: ExecutionContext, work: (ctx: ExecutionContext) => Promise<Result>): Promise<Result> {
    const failing = new AbortController();
    const waiting = this.wait();
    waiting.catch((error: unknown) => failing.abort(error));
    let result: Result;
    try {
      result = await work({ ...ctx, signal: AbortSignal.any([ctx.signal, failing.signal]) });
    } catch (error) {
      throw failing.signal.aborted && !ctx.signal.aborted ? failing.signal.reason : error;
    }
    using _ = ctx.metrics.begin('open devices');
    await waiting;
    return result;
  }
}
