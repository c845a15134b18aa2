import type { GpuTaskHandler } from './handler.ts';

export const kernelTimes: GpuTaskHandler<'kernel-times'> = async ({ gpu, params }) => {
  gpu.clock.running = params.run;
  return { rows: 0, values: { ...gpu.clock.take() } };
};
