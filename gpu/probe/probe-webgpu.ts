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

/** The releases that package.json's "optionalDependencies" admits. */
const WEBGPU = 'webgpu@0.6';

/**
 * A message that explains why no adapter was found and what to do, for users who may not want a GPU.
 * Undefined if a hardware adapter was found.
 */
export function explainProbe(outcome: ProbeOutcome, platform: NodeJS.Platform): string | undefined {
  const finding = findingOf(outcome, platform);
  return finding && `nothing to do for the CPU, which is used here; for a GPU: ${finding}`;
}

/** The finding without a remedy. */
export function findingOf(
  { adapter, failure, ending, messages }: ProbeOutcome,
  platform: NodeJS.Platform,
): string | undefined {
  if (adapter !== undefined) {
    return adapter.isFallback
      ? `This adapter computes on the processor and is slow. ${install(platform, messages)}`
      : undefined;
  }
  const said = messages === '' ? '' : ` It said: ${errorLine(messages)}`;
  switch (failure) {
    case 'not installed':
      return (
        'The package webgpu, which GPUs need, is missing in this installation. Add it with npm install ' +
        `${WEBGPU}, or install without --omit=optional.`
      );
    case 'timeout':
      return `The graphics driver did not answer within 20 seconds.${said} Update it, or restart the machine.`;
    case 'crash':
      return `The graphics driver crashed (${ending}).${said} Update it.`;
    case 'error':
      if (/ERR_MODULE_NOT_FOUND|Cannot find (module|package)/.test(messages))
        return (
          `The binary of the package webgpu for this platform is missing.${said} Install it again with ` +
          `npm install ${WEBGPU}.`
        );
      if (/GLIBC|cannot open shared object|ERR_DLOPEN_FAILED/.test(messages)) {
        return (
          `The binary of the package "webgpu" does not load here: ${errorLine(messages)} It needs a ` +
          'newer system or the library named.'
        );
      }
      return `The probe failed (${ending}).${said}`;
    default:
      return install(platform, messages);
  }
}

/** The graphics interface that Dawn uses on the platform; WebGPU does not report it. */
export function backendName(platform: NodeJS.Platform): string {
  if (platform === 'darwin') return 'Metal';
  return platform === 'win32' ? 'Direct3D 12' : 'Vulkan';
}

function install(platform: NodeJS.Platform, messages: string): string {
  if (platform === 'darwin')
    return (
      'macOS brings Metal along; a Mac without a supported GPU, or a session without access to it, has ' +
      'no adapter.'
    );
  if (platform === 'win32') return "Install the GPU maker's current driver, which brings Direct3D 12 along.";
  const drivers =
    'NVIDIA: its driver with Vulkan (nvidia-driver, in containers the capability "graphics"); AMD and ' +
    'Intel: mesa-vulkan-drivers';
  if (/load Vulkan: libvulkan/.test(messages)) {
    return (
      'The Vulkan loader is missing (libvulkan.so.1). Install it (Debian, Ubuntu: apt install ' +
      `libvulkan1; Fedora: dnf install vulkan-loader) and a Vulkan driver. ${drivers}.`
    );
  }
  return (
    'The Vulkan loader is installed, but no driver of a graphics card offers a device. Install one. ' +
    `${drivers}. "vulkaninfo --summary" lists drivers and devices; in a container /dev/dri or /dev/nvidia* ` +
    'must be passed in.'
  );
}

function lastLine(text: string): string {
  return (
    text
      .split('\n')
      .findLast((line) => line.trim() !== '')
      ?.trim() ?? ''
  );
}

function errorLine(text: string): string {
  const line =
    text
      .split('\n')
      .find((candidate) => candidate.includes('Error:'))
      ?.trim() ?? lastLine(text);
  return line.endsWith('.') ? line : `${line}.`;
}
