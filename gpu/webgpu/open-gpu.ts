import { acquireGpu } from './acquire.ts';
import { Gpu } from './gpu.ts';
import type { AcquireOptions } from './gpu-info.ts';

/**
 * Opens the best adapter. `memoryBytes`: the GPU memory that may be used; freed buffers are kept for reuse
 * within it. Throws UsageError with the reason if there is no adapter.
 */
export async function openGpu({
  memoryBytes,
  ...options
}: AcquireOptions & { readonly memoryBytes?: number | undefined } = {}): Promise<Gpu> {
  return new Gpu(await acquireGpu(options), memoryBytes);
}
