import type { ProbeOutcome } from './probe-webgpu.ts';

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
