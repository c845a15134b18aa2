import { availableParallelism, cpus, freemem, release, totalmem, type } from 'node:os';
import { availableBuild, type KernelBuild } from '../../cpu/compile-kernels.ts';
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
