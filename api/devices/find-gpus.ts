import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import { findingOf } from '../../gpu/probe/explain-probe.ts';
import { hasGraphicsDevice } from '../../gpu/probe/system-files.ts';
import { KnownDrivers } from '../../gpu/probe/known-driver.ts';
import { type Adapter, type ProbeOutcome, probeWebGpu } from '../../gpu/probe/probe-webgpu.ts';
import { cardsOf, type DeviceRequest } from './device-request.ts';
import { type GpuMachine, gpusOfThisMachine, openCards, type OpenedGpu, openFirst } from './open-gpus.ts';

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

export const thisMachine: Machine = {
  ...gpusOfThisMachine,
  hasGraphicsDevice,
  known: () => new KnownDrivers().take(),
  probe: probeWebGpu,
  note: (adapter) => new KnownDrivers().keep(adapter),
};

/** Opened GPUs. */
export interface FoundGpus {
  readonly gpus: readonly OpenedGpu[];
  /** Resolves when the GPUs' driver has been recorded as known. */
  readonly noted?: Promise<void>;
}

/** No GPU is used. `reason` says why, unless the user asked for the CPU. */
export interface NoGpu {
  readonly missing: string | undefined;
}

/** GPUs to look for. */
export interface WantedGpus {
  readonly device: DeviceRequest;
  readonly deviceMemory?: number | undefined;
  readonly fakeDevices?: number | undefined;
  readonly signal: AbortSignal;
}

/** GPUs that are being found and opened. */
export interface BegunGpus {
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
export function beginGpus(wanted: WantedGpus, machine: Machine): BegunGpus {
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
