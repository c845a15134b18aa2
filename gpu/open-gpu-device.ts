import { GpuDevice, type GpuDeviceOptions } from './device.ts';
import { GpuThread, type GpuThreadOptions } from './gpu-thread.ts';
import { TunerCache } from './update/choice/tuner-cache.ts';

export interface OpenGpuDeviceOptions extends GpuThreadOptions, Partial<GpuDeviceOptions> {
  /** A thread that is already opening such a GPU. */
  readonly thread?: GpuThread | undefined;
}

/**
 * Opens a GPU in a thread of its own. `tunedKernels`: default is a file in the user's cache folder. Throws
 * UsageError with the reason when there is no adapter.
 */
export async function openGpuDevice({
  tunedKernels = new TunerCache(),
  thread: begun,
  ...options
}: OpenGpuDeviceOptions = {}): Promise<GpuDevice> {
  const thread = begun ?? new GpuThread(options);
  const device = new GpuDevice(thread.pool, await thread.info, { ...options, tunedKernels });
  thread.crashed = (cause) => device.lost(cause);
  return device;
}
