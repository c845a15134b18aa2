import { throwIfAborted } from '../../engine/errors.ts';
import { backendName, explainProbe } from '../../gpu/probe/explain-probe.ts';
import { type Adapter, type ProbeOutcome, probeWebGpu } from '../../gpu/probe/probe-webgpu.ts';

/** The GPU of this machine, found by a process of its own: a driver that crashes ends that one alone. */
export interface WebGpuFacts {
  readonly adapter: Adapter | null;
  /** The interface of the system by which WebGPU reaches it, such as Vulkan. */
  readonly backend: string;
  readonly failure: ProbeOutcome['failure'] | null;
  /** The remedy, where there is one. */
  readonly advice: string | null;
  /** Texts of the driver. */
  readonly messages: string | null;
}

/** Looks for a GPU without opening it here. Throws CancelledError. */
export async function webGpuFacts(signal: AbortSignal): Promise<WebGpuFacts> {
  const outcome = await probeWebGpu(signal);
  throwIfAborted(signal, 'doctor');
  const { adapter = null, failure = null, messages } = outcome;
  return {
    adapter,
    backend: backendName(process.platform),
    failure,
    advice: explainProbe(outcome, process.platform) ?? null,
    messages: messages || null,
  };
}
