import type { Task } from '../../engine/task.ts';
import type { GpuTaskHandler } from '../handler.ts';

/**
 * What kernels took on the GPU since this was asked last, and whether their time is taken from now on (`run`), for benches.
 *
 * Values: milliseconds by kernel name; none where the adapter has no timestamps.
 */
export type KernelTimesTask = Task<'kernel-times', { readonly run: boolean }>;

export const kernelTimes: GpuTaskHandler = async ({ gpu, params }) => {
  gpu.clock.running = (params as KernelTimesTask['params']).run;
  return { rows: 0, values: { ...gpu.clock.take() } };
};
