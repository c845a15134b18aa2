import { openCpus } from '../../cpu/device.ts';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { Device } from '../../engine/run/device.ts';
import { findingOf } from '../../gpu/probe/explain-probe.ts';
import { hasGraphicsDevice } from '../../gpu/probe/graphics-device.ts';
import { KnownDrivers } from '../../gpu/probe/known-driver.ts';
import { type Adapter, type ProbeOutcome, probeWebGpu } from '../../gpu/probe/probe-webgpu.ts';
import { cardsOf, type DeviceRequest } from './device-request.ts';
import { type GpuMachine, gpusOfThisMachine, openCards, type OpenedGpu, openFirst } from './open-gpus.ts';
import type { CpuAhead } from './cpu-ahead.ts';
import { cpuThreads, fileTasks } from './cpu-threads.ts';
import type { GpuAhead } from './gpu-ahead.ts';
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
  readonly workers?: number;
  /** Bytes of each GPU's memory that may be used. */
  readonly memoryBytes?: number;
  /** Shared memory that may be released before threads are told to collect it, where memory is scarce. */
  readonly collectBytes?: number;
  /** Devices in the place of one: the threads of the CPU shared out, or the one GPU opened several times. */
  readonly fakeDevices?: number;
  readonly signal?: AbortSignal;
}

/** The functions that examine the machine; tests replace them. */
export interface Machine extends GpuMachine {
  /** True where a GPU is being opened already. */
  readonly ahead?: boolean;
  /** Gives a CPU whose threads have begun already, once. */
  readonly cpu?: (isRepeatable: (kernel: string) => boolean) => Device | undefined;
  readonly hasGraphicsDevice: () => boolean;
  readonly probe: (signal?: AbortSignal) => Promise<ProbeOutcome>;
  /** Told the adapter that a probe found, once it has opened. */
  readonly opened?: (adapter: Adapter) => Promise<void>;
}

const ofCpus = { handlers: fileTasks, repeatable: isRepeatable };

const thisMachine: Machine = {
  ...gpusOfThisMachine,
  hasGraphicsDevice,
  probe: async (signal) => (await new KnownDrivers().take()) ?? probeWebGpu(signal),
  opened: (adapter) => new KnownDrivers().keep(adapter),
};

/** Devices that a command has begun to open before the rest of it was loaded. */
export interface DevicesAhead {
  readonly gpu?: GpuAhead | undefined;
  readonly cpu?: CpuAhead | undefined;
}

/** This machine, for a session that takes devices which are being opened already. */
export function machineAhead({ gpu, cpu }: DevicesAhead): Machine {
  return {
    ...thisMachine,
    ...(cpu && { cpu: (repeatable) => cpu.take(repeatable) }),
    ...(gpu && {
      ahead: true,
      probe: async (signal) =>
        gpu.adapter === undefined
          ? thisMachine.probe(signal)
          : { adapter: gpu.adapter, messages: '', known: true },
      open: (options) => thisMachine.open({ ...options, thread: gpu.take() }),
    }),
  };
}

/** The search for a GPU and its opening, for a session that has begun. */
export interface Opening {
  readonly found: Promise<SessionDevice>;
  /** Gives up, where that is still possible. */
  end(): void;
}

/** Devices of which the first CPU is open. */
export interface OpeningDevices {
  readonly cpu: Device;
  /**
   * All of them: of `auto` with `fakeDevices` not this one where there is no GPU. Rejects as openDevices
   * does; this one stays open then.
   */
  readonly all: Promise<OpenedDevices>;
}

/** Opens the devices of a session; see beginDevices. */
export async function openDevices(
  options: OpenDevicesOptions,
  machine: Machine = thisMachine,
): Promise<OpenedDevices> {
  const { cpu, all } = beginDevices(options, machine);
  try {
    return await all;
  } catch (error) {
    await cpu.close();
    throw error;
  }
}

/**
 * Opens the CPU of a session, and begins to look for a GPU and to open it where one may be used. A broken
 * driver ends only the process that probes it. Throws CapacityError where limits of the system leave too few
 * open files or addresses. `all` throws UsageError with the reason and the packages to install when a GPU was
 * asked for and there is none; CancelledError.
 *
 */
export function beginDevices(
  {
    device: requested,
    workers: asked,
    memoryBytes,
    collectBytes,
    fakeDevices = 1,
    signal,
  }: OpenDevicesOptions,
  machine: Machine = thisMachine,
): OpeningDevices {
  const workers = cpuThreads(requested, asked, machine.ahead === true);
  const begun = machine.cpu?.(isRepeatable);
  if (begun === undefined) requireLimits(workers, requested === 'cpu' ? fakeDevices : 1);
  const onCpus = { ...ofCpus, ...(collectBytes === undefined ? {} : { collectBytes }) };
  const open = (count: number): readonly Device[] =>
    begun === undefined || count > 1 ? openCpus(count, workers, onCpus) : [begun];
  const onCpu = (devices: readonly Device[], reason?: string): OpenedDevices => ({
    devices,
    device: { requested, kind: 'cpu', adapter: null, description: descriptionOf(devices), reason },
  });
  if (requested === 'cpu') {
    const devices = open(fakeDevices);
    return { cpu: devices[0], all: Promise.resolve(onCpu(devices)) };
  }
  const [cpu] = open(1);
  const without = async (reason: string) => {
    if (fakeDevices === 1) return onCpu([cpu], reason);
    await cpu.close();
    return onCpu(open(fakeDevices), reason);
  };
  /**
   * A driver that is known from an earlier run and does not open now, or computes on the processor, has been
   * forgotten: the next look is a probe.
   */
  const openFound = async (): Promise<
    { readonly adapter: Adapter; readonly gpus: readonly OpenedGpu[] } | { readonly missing: string }
  > => {
    const found = await findGpu(requested, machine, signal);
    if ('missing' in found) return found;
    const { adapter, known } = found;
    const cards = cardsOf(requested);
    const opening =
      cards === undefined
        ? openFirst(fakeDevices, memoryBytes, machine)
        : openCards(cards, adapter.vendor, memoryBytes, machine);
    const gpus = await (known ? opening.catch(() => []) : opening);
    if (!known || gpus.some(({ adapter: { software } }) => !software)) return { adapter, gpus };
    await Promise.all(gpus.map((gpu) => gpu.close()));
    return openFound();
  };
  const onGpu = async (): Promise<OpenedDevices> => {
    try {
      const found = await openFound();
      if ('missing' in found) return await without(found.missing);
      const { gpus } = found;
      const software = gpus.find(({ adapter }) => adapter.software)?.adapter.name;
      // The note is written beside; it never throws.
      if (software === undefined) void machine.opened?.(found.adapter);
      const warning =
        software === undefined
          ? undefined
          : `the GPU ${software} computes on the processor, far slower than device cpu: it serves for tests only`;
      const adapter = [...new Set(gpus.map(({ adapter: { name } }) => name))].join(', ');
      return {
        devices: [cpu, ...gpus],
        device: { requested, kind: 'gpu', adapter, description: descriptionOf(gpus), warning },
      };
    } catch (error) {
      if (requested !== 'auto' || signal?.aborted) throw error;
      return without(error instanceof Error ? error.message.split('\n')[0] : String(error));
    }
  };
  return { cpu, all: onGpu() };
}

/** "NVIDIA H200; f16, subgroups, tensor", of several devices "gpu:0 (..), gpu:1 (..)". */
function descriptionOf(devices: readonly Device[]): string {
  if (devices.length === 1) return devices[0].info.description;
  return devices.map(({ info: { place, description } }) => `${place} (${description})`).join(', ');
}

/** The GPU to open, or the reason why `auto` takes the CPU. Throws UsageError for `gpu` without a GPU. */
async function findGpu(
  requested: DeviceRequest,
  { hasGraphicsDevice, probe }: Machine,
  signal?: AbortSignal,
): Promise<{ readonly adapter: Adapter; readonly known: boolean } | { readonly missing: string }> {
  if (requested === 'auto' && !hasGraphicsDevice())
    return { missing: 'no GPU: this system has no graphics device' };
  const outcome = await probe(signal);
  // Ctrl-C also ends the probe's process; that is not a crash.
  throwIfAborted(signal, 'gpu');
  const { adapter, failure, known = false } = outcome;
  if (adapter !== undefined)
    return requested === 'auto' && adapter.isFallback
      ? { missing: `no GPU: the only adapter, ${adapter.name}, computes on the processor` }
      : { adapter, known };
  const summary = {
    'not installed': 'the package webgpu is not installed',
    'no adapter': 'WebGPU found no adapter on this machine',
    timeout: 'the graphics driver did not answer',
    crash: 'the graphics driver crashed',
    error: 'WebGPU does not run here',
  }[failure ?? 'no adapter'];
  if (requested === 'auto') return { missing: `no GPU: ${summary}` };
  throw new UsageError(`no GPU: ${summary}`, {
    advice: `${findingOf(outcome, process.platform) ?? ''} Or use device cpu`.trim(),
  });
}
