import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { workerFile } from '../../engine/threads/worker-file.ts';

export interface Adapter {
  readonly name: string;
  readonly vendor: string;
  readonly architecture: string;
  /** True when it computes on the processor. */
  readonly isFallback: boolean;
  readonly features: readonly string[];
}

/** Result of a probe. `messages` is the stderr of the driver and Dawn. */
export interface ProbeOutcome {
  readonly adapter?: Adapter;
  readonly failure?: 'not installed' | 'no adapter' | 'timeout' | 'crash' | 'error';
  /** The signal or exit code of a crash. */
  readonly ending?: string;
  readonly messages: string;
}

const TIMEOUT_MILLISECONDS = 20_000;

/**
 * Searches for a WebGPU adapter that opens a device. Runs for at most 20 seconds and in a child process, so
 * that a driver that crashes or hangs does no harm. Never throws.
 */
export function probeWebGpu(signal?: AbortSignal): Promise<ProbeOutcome> {
  if (!isInstalled('webgpu')) return Promise.resolve({ failure: 'not installed', messages: '' });
  const file = fileURLToPath(workerFile(new URL('./webgpu-probe.js', import.meta.url)));
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [file],
      { timeout: TIMEOUT_MILLISECONDS, killSignal: 'SIGKILL', signal, windowsHide: true },
      (error, stdout, stderr) => {
        resolve(outcomeOf(error, stdout, stderr.trim()));
      },
    );
  });
}

/** False for an optional package that was not installed. */
function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

function outcomeOf(error: Error | null, stdout: string, messages: string): ProbeOutcome {
  // Lines before and after may be output of a driver.
  const line = stdout.split('\n').find((text) => text.startsWith('{"adapter":'));
  if (line !== undefined) {
    const { adapter } = JSON.parse(line) as { readonly adapter: Adapter | null };
    return adapter === null ? { failure: 'no adapter', messages } : { adapter, messages };
  }
  const { killed, signal, code } = { killed: false, signal: undefined, code: undefined, ...error } as {
    killed: boolean;
    signal?: string | null;
    code?: number | string | null;
  };
  if (killed) return { failure: 'timeout', messages };
  if (typeof signal === 'string') return { failure: 'crash', ending: signal, messages };
  return { failure: 'error', ending: `exit code ${code ?? 0}`, messages };
}
