import { toHalfKernel, toHalfWorkgroups } from '../kernels/copies/to-half.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Pass } from '../webgpu/pass.ts';
import type { DeviceMatrix } from '../device/resources.ts';

/** Adds the making of a matrix's half mirror to a pass. */
export async function addHalf(gpu: Gpu, pass: Pass, { rows, stride, values, half }: DeviceMatrix): Promise<void> {
  if (half === undefined) throw new Error('this matrix has no half mirror');
  const quads = stride / 4;
  pass.dispatch(await gpu.compile(toHalfKernel, {}), { factors: values, half }, { rows, quads }, toHalfWorkgroups(rows, quads));
}
