import type { DeviceMatrix } from '../device/resources.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Pass } from '../webgpu/pass.ts';
import { kernelOf } from '../webgpu/kernel.ts';

const THREADS = 256;

/**
 * Rounds a matrix to float16, in its half mirror (DeviceMatrix.half): `rows` rows of 4 `quads` features, and
 * one more row of zeros.
 */
export const toHalfKernel = kernelOf()({
  name: 'to-half',
  reads: { factors: 'array<vec4f>' },
  writes: { half: 'array<vec2u>' },
  uniforms: {
    rows: 'u32',
    quads: 'u32',
  },
  values: () => ({ THREADS }),
});

/** Adds to a pass the kernel that fills a matrix's half mirror. */
export async function addHalf(
  gpu: Gpu,
  pass: Pass,
  { rows, stride, values, half }: Omit<DeviceMatrix, 'columns'>,
): Promise<void> {
  if (half === undefined) throw new Error('this matrix has no half mirror');
  const quads = stride / 4;
  pass.dispatch(
    await gpu.compile(toHalfKernel, {}),
    { factors: values, half },
    { rows, quads },
    Math.ceil(((rows + 1) * quads) / THREADS),
  );
}
