import type { None } from '../../operators/tasks/tasks.ts';
import type { GpuTaskHandler } from '../handler.ts';

/**
 * Tells the time that kernels took on the GPU since this was asked last, and takes it from now on or no longer (`run`), for benches.
 *
 * Values: milliseconds by kernel name; none where the adapter has no timestamps.
 */
export interface KernelTimesTask {
  inputs: None;
  outputs: None;
  params: { readonly run: boolean };
  values: { readonly [kernel: string]: number };
}

export const kernelTimes: GpuTaskHandler<'kernel-times'> = async ({ gpu, params }) => {
  gpu.clock.running = params.run;
  return { rows: 0, values: { ...gpu.clock.take() } };
};
