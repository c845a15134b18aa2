import { throwIfAborted } from '../../engine/errors.ts';
import {
  backendName,
  explainProbe,
  type Adapter,
  type ProbeOutcome,
  probeWebGpu,
} from '../../gpu/probe/probe-webgpu.ts';

/** The GPU of this machine, found in a separate process: a driver that crashes ends only that process. */
export interface WebGpuFacts {
  readonly adapter: Adapter | null;
  /** The system's interface that WebGPU uses, such as Vulkan. */
  readonly backend: string;
  readonly failure: ProbeOutcome['failure'] | null;
  /** A remedy, if there is one. */
  readonly advice: string | null;
  /** The driver's messages. */
  readonly messages: string | null;
}

/** Finds a GPU without opening it in this process. Throws CancelledError. */
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
