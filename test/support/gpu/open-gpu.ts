import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { openGpu } from '../../../gpu/webgpu/open-gpu.ts';
import type { AcquireOptions } from '../../../gpu/webgpu/gpu-info.ts';

/** The reason why GPU tests cannot run here, or undefined. Tests that are skipped for it say so. */
export const noGpu: string | undefined = process.env.FACTORFLOW_TEST_NO_GPU || undefined;

if (noGpu !== undefined) console.warn(`GPU TESTS ARE SKIPPED: ${noGpu}`);

/**
 * The software adapter of the tests, as in use: accesses are not guarded, which compiles several times
 * faster, and workgroup memory is undefined at first.
 */
export function openTestGpu(options: AcquireOptions = {}): Promise<Gpu> {
  return openGpu(options);
}
