import { type KernelTimes, Pass } from './pass.ts';

/** Adds up the kernels' times on the GPU while `running` is true; see the task kernel-times. */
export class KernelClock {
  running = false;
  #times: Record<string, number> = {};

  add(times: KernelTimes): void {
    for (const [kernel, milliseconds] of Object.entries(times))
      this.#times[kernel] = (this.#times[kernel] ?? 0) + milliseconds;
  }

  /** The sums since the last call. */
  take(): KernelTimes {
    const times = this.#times;
    this.#times = {};
    return times;
  }
}

/**
 * A pass that adds its kernels' times to a clock. For this each kernel is a compute pass of its own, which
 * costs some microseconds.
 */
export class TimedPass extends Pass {
  readonly #clock: KernelClock;

  constructor(clock: KernelClock, ...of: ConstructorParameters<typeof Pass>) {
    super(...of);
    this.#clock = clock;
  }

  override async submit(options: Parameters<Pass['submit']>[0] = {}) {
    const result = await super.submit({ ...options, timed: true });
    this.#clock.add(result.times);
    return result;
  }
}
