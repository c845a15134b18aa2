import type { RequestSession, RunOptions } from '../api/run-session.ts';
import { SessionWork } from '../api/session-work.ts';
import { noEvents } from '../engine/events.ts';
import { RunMetrics } from '../engine/metrics.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import type { Device, Executor } from '../engine/run/device.ts';
import { HostMemory } from '../engine/run/host-memory.ts';
import { PageDevice, type PageTasks } from './page-device.ts';

/** The session of one model of a page, with its device. */
export class PageSession implements RequestSession {
  readonly ids = undefined;
  readonly #work = new SessionWork();
  readonly #device: PageDevice;
  readonly #executor: Executor;

  private constructor(device: PageDevice) {
    this.#device = device;
    const memory = new HostMemory();
    this.#executor = {
      devices: [device],
      memory,
      close: async () => {
        await device.close();
        await memory.close();
      },
    };
  }

  /** See PageDevice.open. */
  static async open(tasks: PageTasks, threads = 1): Promise<PageSession> {
    return new PageSession(await PageDevice.open(tasks, threads));
  }

  get closed(): boolean {
    return this.#work.closed;
  }

  /** `gpu`: a further device, for this request alone. */
  requestContext({ signal, onEvent = noEvents }: RunOptions = {}, gpu?: Device): ExecutionContext {
    this.#work.requireOpen();
    return {
      signal: this.#work.signalOf(signal),
      follow: this.#work.follow,
      executor: gpu ? { ...this.#executor, devices: [...this.#executor.devices, gpu] } : this.#executor,
      events: onEvent,
      metrics: new RunMetrics(),
    };
  }

  /** Ends the threads of a training. */
  endThreads(): void {
    this.#device.endThreads();
  }

  async close(): Promise<void> {
    await this.#work.close();
    await this.#executor.close();
  }
}
