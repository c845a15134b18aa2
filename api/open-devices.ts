import { CpuDevice } from '../cpu/device.ts';
import { throwIfAborted, UsageError } from '../engine/errors.ts';
import type { Device } from '../engine/executor.ts';
import { findingOf } from '../gpu/probe/explain-probe.ts';
import { hasGraphicsDevice } from '../gpu/probe/graphics-device.ts';
import { type ProbeOutcome, probeWebGpu } from '../gpu/probe/probe-webgpu.ts';

/** `auto`: a hardware GPU where there is one, else the CPU. `gpu`: whatever adapter there is, or an error. */
export type DeviceName = 'auto' | 'cpu' | 'gpu';

export const deviceNames: readonly DeviceName[] = ['auto', 'cpu', 'gpu'];

/** Where a session computes, and why. */
export interface SessionDevice {
  readonly requested: DeviceName;
  readonly kind: 'cpu' | 'gpu';
  /** Name of the GPU, such as "NVIDIA H200". */
  readonly adapter: string | null;
  /** "NVIDIA H200; f16, subgroups, tensor", or "2 threads, WebAssembly relaxed-simd". */
  readonly description: string;
  /** Why it is the CPU, where `auto` was asked for. */
  readonly reason?: string;
  /** What the user should know before a long run. */
  readonly warning?: string;
}

export interface OpenedDevices {
  /** The CPU's comes first and is always there: it sorts and numbers. */
  readonly devices: readonly Device[];
  readonly device: SessionDevice;
}

export interface OpenDevicesOptions {
  readonly device: DeviceName;
  readonly workers?: number;
  /** Bytes of the GPU's memory that may be used. */
  readonly memoryBytes?: number;
  readonly signal?: AbortSignal;
}

/** A GPU as a session sees it. Not GpuDevice itself: its declarations name WebGPU's types, which not every program has. */
export type OpenedGpu = Device & { readonly info: { readonly name: string; readonly software: boolean } };

/** What is asked about the machine; tests ask something else. */
export interface Machine {
  readonly hasGraphicsDevice: () => boolean;
  readonly probe: (signal?: AbortSignal) => Promise<ProbeOutcome>;
  readonly open: (options: { readonly memoryBytes?: number }) => Promise<OpenedGpu>;
}

const thisMachine: Machine = {
  hasGraphicsDevice,
  probe: probeWebGpu,
  // Loaded where it is needed: most runs start without.
  open: async (options) => (await import('../gpu/device.ts')).GpuDevice.open(options),
};

/**
 * Opens the devices of a session. A driver that is broken ends no more than the process that probes it. Throws UsageError
 * with the reason and what to install when a GPU was asked for and there is none; CancelledError.
 */
export async function openDevices({ device: requested, workers, memoryBytes, signal }: OpenDevicesOptions, machine: Machine = thisMachine): Promise<OpenedDevices> {
  const cpu = new CpuDevice({ threads: workers });
  const onCpu = (reason?: string): OpenedDevices => ({ devices: [cpu], device: { requested, kind: 'cpu', adapter: null, description: cpu.info.description, reason } });
  if (requested === 'cpu') return onCpu();
  try {
    const missing = await missingGpu(requested, machine, signal);
    if (missing !== undefined) return onCpu(missing);
    const gpu = await machine.open({ memoryBytes });
    const { name, software } = gpu.info;
    const warning = software ? `the GPU ${name} computes on the processor, far slower than device cpu: it serves for tests only` : undefined;
    return { devices: [cpu, gpu], device: { requested, kind: 'gpu', adapter: name, description: gpu.description, warning } };
  } catch (error) {
    if (requested === 'auto' && !signal?.aborted) return onCpu(error instanceof Error ? error.message.split('\n')[0] : String(error));
    await cpu.close();
    throw error;
  }
}

/** Why `auto` does without a GPU; undefined when there is one to take. Throws UsageError for `gpu` without any. */
async function missingGpu(requested: DeviceName, { hasGraphicsDevice, probe }: Machine, signal?: AbortSignal): Promise<string | undefined> {
  if (requested === 'auto' && !hasGraphicsDevice()) return 'no GPU: this system has no graphics device';
  const outcome = await probe(signal);
  // Ctrl-C reaches the probe's process too, and is no crash.
  throwIfAborted(signal, 'gpu');
  const { adapter, failure } = outcome;
  if (adapter !== undefined) return requested === 'auto' && adapter.isFallback ? `no GPU: the only adapter, ${adapter.name}, computes on the processor` : undefined;
  const summary = { 'no adapter': 'WebGPU found no adapter on this machine', timeout: 'the graphics driver did not answer', crash: 'the graphics driver crashed', error: 'WebGPU does not run here' }[failure ?? 'no adapter'];
  if (requested === 'auto') return `no GPU: ${summary}`;
  throw new UsageError(`no GPU: ${summary}`, { advice: `${findingOf(outcome, process.platform) ?? ''} Or use device cpu`.trim() });
}
