import { availableParallelism, totalmem } from 'node:os';
import { checkThreads, openCpus } from '../../cpu/device.ts';
import type { Device } from '../../engine/run/device.ts';
import { keepHeapsSmall } from '../../engine/threads/collect-garbage.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import type { DeviceRequest } from './device-request.ts';
import { beginGpus, type BegunGpus, type FoundGpus, type Machine, thisMachine } from './find-gpus.ts';
import { isRepeatable } from './repeatable.ts';
import { requireLimits } from './system-limits.ts';

/** The devices that a session computes on, and the reason for the choice. */
export interface SessionDevice {
  readonly requested: DeviceRequest;
  readonly kind: 'cpu' | 'gpu';
  /** Name of the GPU, such as "NVIDIA H200"; of several different ones all names. */
  readonly adapter: string | null;
  /**
   * "NVIDIA H200; f16, subgroups, tensor", or "2 threads, WebAssembly relaxed-simd"; of several devices
   * "gpu:0 (..), gpu:1 (..)".
   */
  readonly description: string;
  /** The reason for the CPU, where `auto` was asked for. */
  readonly reason?: string;
  /** A warning before a long run. */
  readonly warning?: string;
}

export interface OpenedDevices {
  /** The first is a CPU's: it sorts and numbers. */
  readonly devices: readonly Device[];
  readonly device: SessionDevice;
}

export interface OpenDevicesOptions {
  readonly device: DeviceRequest;
  /** Threads of the CPU. */
  readonly workers?: number | undefined;
  /** Bytes that the whole process may have resident. */
  readonly memoryBudget?: number | undefined;
  /** Bytes of each GPU's memory that may be used. */
  readonly deviceMemory?: number | undefined;
  /** Devices in the place of one: the threads of the CPU shared out, or the one GPU opened several times. */
  readonly fakeDevices?: number | undefined;
  /** A task of files whose modules the threads of the CPU load as they begin. */
  readonly loads?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The module whose tasks read and write files. */
const fileTasks: URL = workerFile(new URL('./file-tasks.js', import.meta.url));

/**
 * A memory budget in which the heaps of threads and memory that waits for its collection would take a large
 * part.
 */
const SCARCE_BYTES = 2 ** 30;
/** Of such a budget the share that may wait for its collection. */
export const SCARCE_COLLECT_SHARE = 40;

/**
 * The devices of a session, from the moment when they begin to open until they are closed. A command begins
 * them before the rest of it is loaded, and passes them to its session; a session without them begins its
 * own. Loads little for that reason. A GPU begins to open at once, threads of the CPU with `openCpu`.
 */
export class OpeningDevices implements AsyncDisposable {
  readonly #options: OpenDevicesOptions;
  readonly #ending = new AbortController();
  readonly #gpus: BegunGpus;
  #cpus: readonly Device[] | undefined;
  #all: Promise<OpenedDevices> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: OpenDevicesOptions, machine: Machine = thisMachine) {
    this.#options = options;
    const signals = [this.#ending.signal, ...(options.signal ? [options.signal] : [])];
    this.#gpus = beginGpus({ ...options, signal: AbortSignal.any(signals) }, machine);
    // Those who ask for all devices get the error; before that it is no unhandled rejection.
    this.#gpus.found.catch(() => undefined);
  }

  /**
   * The device of the CPU, whose threads begin with the first call. Throws UsageError for a wrong number of
   * threads, CapacityError where limits of the system leave too few open files or addresses.
   */
  openCpu(): Device {
    const { device, fakeDevices = 1 } = this.#options;
    this.#cpus ??= this.#beginCpus(device === 'cpu' ? fakeDevices : 1);
    return this.#cpus[0];
  }

  #beginCpus(count: number): readonly Device[] {
    const { device, workers, memoryBudget = totalmem(), loads } = this.#options;
    const threads = workers ?? threadsBeside(device !== 'cpu' && (device !== 'auto' || this.#gpus.known));
    checkThreads(threads);
    requireLimits(threads, count);
    const isScarce = memoryBudget < SCARCE_BYTES;
    // The threads' heaps have the size that is set before they begin.
    if (isScarce) keepHeapsSmall();
    return openCpus(count, threads, {
      handlers: fileTasks,
      repeatable: isRepeatable,
      // Preloaded modules cost memory in each thread: with little memory, threads load them on demand.
      ...(isScarce ? { collectBytes: memoryBudget / SCARCE_COLLECT_SHARE } : { loads }),
    });
  }

  /**
   * All devices, the CPU of `openCpu` first. With `auto`, `fakeDevices` and no GPU, several CPUs replace that
   * CPU. Throws the errors of `openCpu`; UsageError (the reason, and the packages to install) if a GPU was
   * asked for but not found; CancelledError.
   */
  all(): Promise<OpenedDevices> {
    this.#all ??= this.#openAll();
    return this.#all;
  }

  async #openAll(): Promise<OpenedDevices> {
    const { device: requested, fakeDevices = 1 } = this.#options;
    const cpu = this.openCpu();
    const found = await this.#gpus.found;
    if ('gpus' in found)
      return { devices: [cpu, ...found.gpus], device: { requested, ...describeGpus(found) } };
    if (this.#cpus?.length !== fakeDevices) {
      await cpu.close();
      this.#cpus = this.#beginCpus(fakeDevices);
    }
    const description = descriptionOf(this.#cpus);
    return {
      devices: this.#cpus,
      device: { requested, kind: 'cpu', adapter: null, description, reason: found.missing },
    };
  }

  /**
   * Gives up a probe under way, waits for a GPU that is being opened, which is noted as known then, and
   * closes all devices.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#ending.abort();
    const [gpus] = await Promise.allSettled([this.#gpus.found, this.#all]);
    const found = gpus.status === 'fulfilled' && 'gpus' in gpus.value ? gpus.value : { gpus: [] };
    await found.noted;
    await Promise.all([...(this.#cpus ?? []), ...found.gpus].map((device) => device.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Threads of the CPU by default: one a core. Beside a GPU they load and sort, for which three quarters of the
 * cores are as fast, while a thread that begins costs a quarter of a second of a processor; the others are
 * for the GPU's thread and its compilers.
 */
function threadsBeside(gpu: boolean): number {
  const cores = availableParallelism();
  return gpu ? cores - Math.floor(cores / 4) : cores;
}

function describeGpus({ gpus }: FoundGpus): Omit<SessionDevice, 'requested'> {
  const software = gpus.find(({ adapter }) => adapter.software)?.adapter.name;
  return {
    kind: 'gpu',
    adapter: [...new Set(gpus.map(({ adapter: { name } }) => name))].join(', '),
    description: descriptionOf(gpus),
    warning:
      software === undefined
        ? undefined
        : `the GPU ${software} computes on the processor, far slower than device cpu: it serves for tests only`,
  };
}

/** "NVIDIA H200; f16, subgroups, tensor", of several devices "gpu:0 (..), gpu:1 (..)". */
function descriptionOf(devices: readonly Device[]): string {
  if (devices.length === 1) return devices[0].info.description;
  return devices.map(({ info: { place, description } }) => `${place} (${description})`).join(', ');
}
