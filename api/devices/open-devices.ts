import { availableParallelism } from 'node:os';
import { checkThreads, openCpus } from '../../cpu/device.ts';
import type { Device } from '../../engine/run/device.ts';
import { keepHeapsSmall } from '../../engine/threads/collect-garbage.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import type { DeviceRequest } from './device-request.ts';
import { beginGpus, type BegunGpus, type FoundGpus, type Machine, thisMachine } from './find-gpus.ts';
import { isRepeatable } from './repeatable.ts';
import { requireLimits } from './system-limits.ts';
import { usableMemory } from './usable-memory.ts';

/** The devices that a session computes on, and the reason for the choice. */
export interface SessionDevice {
  readonly requested: DeviceRequest;
  readonly kind: 'cpu' | 'gpu';
  /** Name of the GPU, such as "NVIDIA H200"; all names if there are several models. */
  readonly adapter: string | null;
  /**
   * "NVIDIA H200; f16, subgroups, tensor", or "2 threads, WebAssembly relaxed-simd"; for several devices
   * "gpu:0 (..), gpu:1 (..)".
   */
  readonly description: string;
  /** The reason why `auto` chose the CPU. */
  readonly reason?: string;
  /** A warning to show before a long run. */
  readonly warning?: string;
}

export interface OpenedDevices {
  /** The first is a CPU device, which numbers ids and sorts ratings. */
  readonly devices: readonly Device[];
  readonly device: SessionDevice;
}

export interface OpenDevicesOptions {
  readonly device: DeviceRequest;
  /** Number of CPU threads. */
  readonly workers?: number | undefined;
  /** Limit of the resident memory of the whole process, in bytes. */
  readonly memoryBudget?: number | undefined;
  /** Limit of the used memory of each GPU, in bytes. */
  readonly deviceMemory?: number | undefined;
  /**
   * Simulates this number of devices: the CPU's threads are divided among them, or the one GPU is opened
   * several times.
   */
  readonly fakeDevices?: number | undefined;
  /** A file task whose modules the CPU's threads load at their start. */
  readonly loads?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The module with the tasks that read and write files. */
const fileTasks: URL = workerFile(new URL('./file-tasks.js', import.meta.url));

/**
 * A smaller memory budget counts as scarce: thread heaps, and released memory that was not collected yet,
 * would be a large part of it.
 */
const SCARCE_BYTES = 2 ** 30;
/**
 * With a scarce budget, released memory is collected when it exceeds 1 / SCARCE_COLLECT_SHARE of the budget.
 */
export const SCARCE_COLLECT_SHARE = 40;

/**
 * The devices of a session, from the start of opening until they are closed. To save time, a command starts
 * opening them before it loads its other modules, and then passes them to its session; this module therefore
 * imports little. The constructor starts to open a GPU, `openCpu` the threads of the CPU.
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
    // Prevents an unhandled rejection; callers of `all` get the error.
    this.#gpus.found.catch(() => undefined);
  }

  /**
   * The CPU device, whose threads start with the first call. Throws UsageError for a wrong number of threads,
   * CapacityError if system limits leave too few open files or too little address space.
   */
  openCpu(): Device {
    const { device, fakeDevices = 1 } = this.#options;
    this.#cpus ??= this.#beginCpus(device === 'cpu' ? fakeDevices : 1);
    return this.#cpus[0];
  }

  #beginCpus(count: number): readonly Device[] {
    const { device, workers, memoryBudget = usableMemory(), loads } = this.#options;
    const threads = workers ?? threadsBeside(device !== 'cpu' && (device !== 'auto' || this.#gpus.known));
    checkThreads(threads);
    requireLimits(threads, count);
    const isScarce = memoryBudget < SCARCE_BYTES;
    // Limits the heaps of threads that are started from here on.
    if (isScarce) keepHeapsSmall();
    return openCpus(count, threads, {
      handlers: fileTasks,
      repeatable: isRepeatable,
      // Modules that are loaded in advance cost memory in each thread, so with little memory threads load
      // them when needed.
      ...(isScarce ? { collectBytes: memoryBudget / SCARCE_COLLECT_SHARE } : { loads }),
    });
  }

  /**
   * All devices, the CPU of `openCpu` first. If `auto` finds no GPU and `fakeDevices` is set, that number of
   * CPU devices takes its place. Throws the errors of `openCpu`; UsageError (the reason, and the packages to
   * install) if a GPU was requested but not found; CancelledError.
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
   * Cancels a running probe, waits for a GPU that is being opened (and recorded as known), and closes all
   * devices.
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
 * Default number of CPU threads: one per core. If a GPU trains, threads only load and sort ratings. Three
 * quarters of the cores are as fast for that, and starting a thread costs a quarter of a second of processor
 * time. The other cores are left for the GPU's thread and its compilers.
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

/** "NVIDIA H200; f16, subgroups, tensor", for several devices "gpu:0 (..), gpu:1 (..)". */
function descriptionOf(devices: readonly Device[]): string {
  if (devices.length === 1) return devices[0].info.description;
  return devices.map(({ info: { place, description } }) => `${place} (${description})`).join(', ');
}
