import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelTimes, Pass, SubmitOptions } from '../webgpu/pass.ts';

/** Content of `status` while no row is bad. */
const NO_ROW = 0xffff_ffff;

/** Submits kernels that write the lowest row without a finite solution to `status`; gives that row, or -1, and with `timed` the kernels' times. */
export async function submitSolved(gpu: Gpu, label: string, options: Pick<SubmitOptions, 'timed' | 'submitted'>, add: (pass: Pass, status: GPUBuffer) => Promise<void>): Promise<{ readonly badRow: number; readonly times: KernelTimes }> {
  const status = await gpu.scratch('status', 16);
  gpu.device.queue.writeBuffer(status, 0, new Uint32Array([NO_ROW]));
  const pass = gpu.pass(label);
  await add(pass, status);
  const { times, bytes } = await pass.submit({ ...options, read: { buffer: status, bytes: 4 } });
  const [bad] = new Uint32Array(bytes);
  return { badRow: bad === NO_ROW ? -1 : bad, times };
}
