import { availableParallelism, cpus, freemem, release, totalmem, type } from 'node:os';
import { availableBuild, type KernelBuild } from '../../cpu/compile-kernels.ts';
import { throwIfAborted } from '../../engine/errors.ts';
import { backendName, explainProbe } from '../../gpu/probe/probe-webgpu.ts';
import { type Adapter, type ProbeOutcome, probeWebGpu } from '../../gpu/probe/probe-webgpu.ts';
import { memoryLimit } from '../devices/system-limits.ts';
import { packageInfo, versionOf } from '../package-info.ts';

export interface Machine {
  readonly versions: Readonly<Record<string, string | null>>;
  readonly os: string;
  readonly cpu: { readonly model: string; readonly cores: number; readonly usable: number };
  readonly memory: {
    readonly total: number;
    readonly free: number;
    /** Limit of the container or user; null without one. */ readonly limit: number | null;
  };
  /** The WebAssembly build that this machine runs; null if it runs none. */
  readonly webAssembly: KernelBuild | null;
}

/** The machine that FactorFlow runs on. */
export function describeMachine(): Machine {
  const packages = ['apache-arrow', 'parquet-wasm', 'webgpu'];
  const total = totalmem();
  return {
    versions: {
      factorflow: packageInfo().version,
      node: process.versions.node,
      ...Object.fromEntries(packages.map((name) => [name, versionOf(name) ?? null])),
    },
    os: `${type()} ${release()} ${process.arch}`,
    cpu: {
      model: cpus()[0]?.model.trim() ?? 'unknown',
      cores: cpus().length,
      usable: availableParallelism(),
    },
    memory: { total, free: freemem(), limit: memoryLimit() ?? null },
    webAssembly: buildOrNull(),
  };
}

function buildOrNull(): KernelBuild | null {
  try {
    return availableBuild();
  } catch {
    return null;
  }
}

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
