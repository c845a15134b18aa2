import type { GpuInfo } from './acquire.ts';
import type { KernelDescriptor, KernelParams } from '../kernels/kernel.ts';

/** Whether an adapter has what a variant needs: features, threads and memory of a workgroup, number of buffers. */
export function admits<Params extends KernelParams>({ features, limits }: GpuInfo, kernel: KernelDescriptor<Params>, params: Params): boolean {
  const { threads, bytes } = kernel.workgroup(params);
  return kernel.needs(params).every((feature) => features.includes(feature)) && threads <= limits.workgroupThreads && bytes <= limits.workgroupBytes && kernel.bindings.length <= limits.storageBuffers;
}
