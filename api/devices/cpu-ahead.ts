import { type CpuDevice, openCpus } from '../../cpu/device.ts';
import { cpuThreads, fileTasks } from './cpu-threads.ts';
import type { DeviceRequest } from './device-request.ts';
import { requireLimits } from './system-limits.ts';

/** The machine flags that say which threads a session has. */
export interface CpuAheadOptions {
  readonly device: DeviceRequest;
  readonly workers?: number | undefined;
  readonly memoryBudget?: number | undefined;
  readonly fakeDevices?: number | undefined;
}

/**
 * The threads of the CPU, which begin while a command is still being loaded, and load meanwhile what reads
 * ratings: one takes 50 ms and more until it can. A session takes their device; disposal closes one that was
 * not taken.
 *
 */
export class CpuAhead implements AsyncDisposable {
  #device: CpuDevice | undefined;
  #isRepeatable: (kernel: string) => boolean = () => false;

  private constructor(threads: number) {
    [this.#device] = openCpus(1, threads, {
      handlers: fileTasks,
      loads: 'read-ratings',
      repeatable: (kernel) => this.#isRepeatable(kernel),
    });
  }

  /**
   * `gpu`: a GPU is being opened already. Undefined where the session opens its devices itself: under a
   * memory budget, and several devices in the place of one. Throws UsageError for a wrong number of threads,
   * CapacityError where limits of the system leave no room for them.
   *
   */
  static begin(
    { device, workers, memoryBudget, fakeDevices }: CpuAheadOptions,
    gpu: boolean,
  ): CpuAhead | undefined {
    if (memoryBudget !== undefined || fakeDevices !== undefined) return undefined;
    const threads = cpuThreads(device, workers, gpu);
    requireLimits(threads);
    return new CpuAhead(threads);
  }

  /**
   * The device, for a session that closes it; undefined after the first time. `isRepeatable`: see CpuDevice.
   */
  take(isRepeatable: (kernel: string) => boolean): CpuDevice | undefined {
    this.#isRepeatable = isRepeatable;
    const device = this.#device;
    this.#device = undefined;
    return device;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#device?.close();
    this.#device = undefined;
  }
}
