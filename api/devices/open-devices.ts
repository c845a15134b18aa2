import { availableParallelism } from 'node:os';
import { encodeContracts } from '../../connectors/output/encode-rows.ts';
import { checkThreads, openCpus } from '../../cpu/device.ts';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { Device } from '../../engine/run/device.ts';
import { collectBytes } from '../../engine/run/garbage.ts';
import type { TaskContracts } from '../../engine/run/step.ts';
import { keepHeapsSmall } from '../../engine/threads/collect-garbage.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import { type Card, findCards, memoryUsed, identifyCards } from '../../gpu/cards/find-cards.ts';
import { GpuThread } from '../../gpu/gpu-thread.ts';
import { KnownDrivers } from '../../gpu/probe/known-driver.ts';
import { findingOf, type Adapter, type ProbeOutcome, probeWebGpu } from '../../gpu/probe/probe-webgpu.ts';
import { hasGraphicsDevice } from '../../gpu/probe/system-files.ts';
import { contracts } from '../../operators/tasks/tasks.ts';
import { cardsOf, type DeviceRequest } from './device-request.ts';
import { requireLimits, usableMemory } from './system-limits.ts';

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
      ...(isScarce
        ? { collectBytes: memoryBudget / SCARCE_COLLECT_SHARE }
        : { collectBytes: collectBytes(memoryBudget), loads }),
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

/** The functions that examine the machine; tests replace them. */
export interface Machine extends GpuMachine {
  readonly hasGraphicsDevice: () => boolean;
  /**
   * An adapter whose driver opened successfully in an earlier run, so that it need not be probed. It is
   * returned only once: if opening it fails, the next call returns undefined.
   */
  readonly known: () => Adapter | undefined;
  readonly probe: (signal?: AbortSignal) => Promise<ProbeOutcome>;
  /** Records an adapter that has opened as known. Never throws. */
  readonly note: (adapter: Adapter) => Promise<void>;
}

/** Opened GPUs. */
interface FoundGpus {
  readonly gpus: readonly OpenedGpu[];
  /** Resolves when the GPUs' driver has been recorded as known. */
  readonly noted?: Promise<void>;
}

/** No GPU is used. `reason` says why, unless the user asked for the CPU. */
interface NoGpu {
  readonly missing: string | undefined;
}

/** GPUs to look for. */
interface WantedGpus {
  readonly device: DeviceRequest;
  readonly deviceMemory?: number | undefined;
  readonly fakeDevices?: number | undefined;
  readonly signal: AbortSignal;
}

/** GPUs that are being found and opened. */
interface BegunGpus {
  /** True if a GPU with a known driver is already being opened. */
  readonly known: boolean;
  /**
   * Rejects with UsageError (the reason, and the packages to install) if a GPU was requested but not found;
   * with CancelledError.
   */
  readonly found: Promise<FoundGpus | NoGpu>;
}

/**
 * Starts to find and open the GPUs of a request. A GPU whose driver worked in an earlier run is opened at
 * once. Others are first tried out (probed) in a separate process, so that a broken driver crashes only that
 * process.
 */
function beginGpus(wanted: WantedGpus, machine: Machine): BegunGpus {
  const without = (missing?: string): BegunGpus => ({ known: false, found: Promise.resolve({ missing }) });
  if (wanted.device === 'cpu') return without();
  if (wanted.device === 'auto' && !machine.hasGraphicsDevice())
    return without('no GPU: this system has no graphics device');
  const known = machine.known();
  const found = open(wanted, machine, known).catch((error: unknown) => {
    if (wanted.device !== 'auto' || wanted.signal.aborted) throw error;
    return { missing: error instanceof Error ? error.message.split('\n')[0] : String(error) };
  });
  return { known: known !== undefined, found };
}

/**
 * Opens the GPUs with a known driver, else probes first. A driver that worked before but now fails to open,
 * or turns out to be a software driver, is forgotten and a probe follows.
 */
async function open(wanted: WantedGpus, machine: Machine, known?: Adapter): Promise<FoundGpus | NoGpu> {
  const adapter = known ?? (await probed(wanted, machine));
  if ('missing' in adapter) return adapter;
  const { device, deviceMemory, fakeDevices = 1 } = wanted;
  const cards = cardsOf(device);
  const opening =
    cards === undefined
      ? openFirst(fakeDevices, deviceMemory, machine)
      : openCards(cards, adapter.vendor, deviceMemory, machine);
  const gpus = await (known ? opening.catch(() => []) : opening);
  const isHardware = gpus.some((gpu) => !gpu.adapter.software);
  if (known === undefined || isHardware)
    return { gpus, ...(isHardware ? { noted: machine.note(adapter) } : {}) };
  await Promise.all(gpus.map((gpu) => gpu.close()));
  return open(wanted, machine);
}

/**
 * The adapter that a probe finds, or the reason why `auto` uses the CPU. Throws UsageError for `gpu` without
 * a GPU.
 */
async function probed({ device, signal }: WantedGpus, { probe }: Machine): Promise<Adapter | NoGpu> {
  const outcome = await probe(signal);
  // Ctrl-C also ends the process of the probe, which must not be taken for a crash of the driver.
  throwIfAborted(signal, 'gpu');
  const { adapter, failure } = outcome;
  if (adapter !== undefined)
    return device === 'auto' && adapter.isFallback
      ? { missing: `no GPU: the only adapter, ${adapter.name}, computes on the processor` }
      : adapter;
  const summary = {
    'not installed': 'the package webgpu is not installed',
    'no adapter': 'WebGPU found no adapter on this machine',
    timeout: 'the graphics driver did not answer',
    crash: 'the graphics driver crashed',
    error: 'WebGPU does not run here',
  }[failure ?? 'no adapter'];
  if (device === 'auto') return { missing: `no GPU: ${summary}` };
  throw new UsageError(`no GPU: ${summary}`, {
    advice: `${findingOf(outcome, process.platform) ?? ''} Or use device cpu`.trim(),
  });
}

/**
 * The part of GpuDevice that a session uses. GpuDevice itself would add WebGPU's types to the public
 * declarations, and not every program has these types.
 */
type OpenedGpu = Device & { readonly adapter: { readonly name: string; readonly software: boolean } };

interface OpenGpuOptions {
  readonly place?: Place;
  readonly memoryBytes?: number;
  /** PCI address of the card, if there are several. */
  readonly card?: string;
  /** See DeviceInfo. */
  readonly group?: number | undefined;
}

/** The functions that find and open GPUs; tests replace them. */
interface GpuMachine {
  readonly open: (options: OpenGpuOptions) => Promise<OpenedGpu>;
  /** The cards of a vendor, in order; undefined if the system does not report them. */
  readonly findCards: (vendor: string) => readonly Card[] | undefined;
  readonly memoryUsed: (cards: readonly Card[]) => Promise<readonly number[]>;
}

export const gpusOfThisMachine: GpuMachine = {
  open: async (options) => {
    const thread = new GpuThread(options);
    // Imported while the GPU's thread opens the GPU, since most runs never need this module.
    const { openGpuDevice } = await import('../../gpu/open-gpu-device.ts');
    return openGpuDevice({ ...options, thread });
  },
  findCards,
  memoryUsed,
};

const thisMachine: Machine = {
  ...gpusOfThisMachine,
  hasGraphicsDevice,
  known: () => new KnownDrivers().take(),
  probe: probeWebGpu,
  note: (adapter) => new KnownDrivers().keep(adapter),
};

/** Opens the system's default GPU `count` times. */
function openFirst(
  count: number,
  memoryBytes: number | undefined,
  machine: GpuMachine,
): Promise<OpenedGpu[]> {
  return openEach(
    Array.from({ length: count }, (_, number) => ({ place: `gpu:${number}`, memoryBytes })),
    machine,
  );
}

/**
 * Opens cards by number. Throws UsageError for a card that does not exist, or if cards cannot be
 * distinguished.
 */
async function openCards(
  wanted: readonly number[],
  vendor: string,
  memoryBytes: number | undefined,
  machine: GpuMachine,
): Promise<OpenedGpu[]> {
  const only = wanted.length === 1 && wanted[0] === 0;
  const cards = machine.findCards(vendor);
  if (only && (cards === undefined || cards.length <= 1)) return openFirst(1, memoryBytes, machine);
  if (cards === undefined)
    throw new UsageError('GPUs can be chosen by number on Linux only', { advice: 'Use device gpu' });
  const missing = wanted.find((number) => number >= Math.max(1, cards.length));
  if (missing !== undefined) {
    const there =
      cards.length > 1 ? `${cards.length} GPUs, gpu:0 to gpu:${cards.length - 1}` : 'one GPU, gpu:0';
    throw new UsageError(`there is no gpu:${missing}: this machine shows ${there}`, {
      advice: 'A container sees the cards that it was given',
    });
  }
  const addresses = await identifyCards(wanted, cards, machine);
  return openEach(
    wanted.map((number) => ({
      place: `gpu:${number}`,
      memoryBytes,
      card: addresses.get(number),
      group: cards[number].socket,
    })),
    machine,
  );
}

/** Opens cards one after the other: an environment variable of the process selects the card. */
async function openEach(options: readonly OpenGpuOptions[], { open }: GpuMachine): Promise<OpenedGpu[]> {
  const opened: OpenedGpu[] = [];
  try {
    for (const one of options) opened.push(await open(one));
    return opened;
  } catch (error) {
    await Promise.allSettled(opened.map((gpu) => gpu.close()));
    throw error;
  }
}

const all: TaskContracts = { ...contracts, ...encodeContracts };

/**
 * True for tasks that only read their inputs and write their outputs completely, so that an interrupted task
 * can run again.
 */
export function isRepeatable(kernel: string): boolean {
  return (
    Object.hasOwn(all, kernel) && Object.values(all[kernel]).every((how) => how === 'read' || how === 'write')
  );
}
