import { type DeviceMatrix, packedBytes } from '../device/resources.ts';
import { addColumnMaxima } from '../int8/int8-plan.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';

/**
 * Rounds a matrix to float16, in its half mirror (DeviceMatrix.half): `rows` rows of 4 `quads` features, and
 * one more row of zeros.
 */
export const toHalfKernel = kernelOf()({
  name: 'to-half',
  reads: { factors: 'array<vec4f>' },
  writes: { half: 'array<vec2u>' },
  uniforms: { rows: 'u32', quads: 'u32' },
  values: () => ({ THREADS: 256 }),
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
    { threads: (rows + 1) * quads },
  );
}

/**
 * Converts a half mirror (the float16 copy of a matrix, DeviceMatrix.half) to a float32 matrix. `quads`: its
 * size in groups of four features.
 */
export const fromHalfKernel = kernelOf()({
  name: 'from-half',
  reads: { half: 'array<vec2<u32>>' },
  writes: { factors: 'array<vec4f>' },
  uniforms: { quads: 'u32' },
  values: () => ({ THREADS: 256 }),
});

/**
 * Rounds a float16 matrix to 8 bits, as one GPU sends it to another: `rows` rows of `quads` groups of four
 * features, each divided by the column's largest |x| (`maxima`), then the largest |x| of each column as
 * float32.
 */
export const packRowsKernel = kernelOf()({
  name: 'pack-rows',
  reads: { half: 'array<vec2u>', maxima: 'array<vec4f>' },
  writes: { packed: 'array<u32>' },
  uniforms: { rows: 'u32', quads: 'u32' },
  values: () => ({ THREADS: 256 }),
});

/** Converts the output of pack-rows to float16. `first`: index of its first group of features in `half`. */
export const unpackRowsKernel = kernelOf()({
  name: 'unpack-rows',
  reads: { packed: 'array<u32>' },
  writes: { half: 'array<vec2u>' },
  uniforms: { rows: 'u32', quads: 'u32', first: 'u32' },
  values: () => ({ THREADS: 256 }),
});

/** Adds to a pass the kernels that round a matrix to 8 bits. Returns their output, a scratch buffer. */
export async function addPacked(
  gpu: Gpu,
  pass: Pass,
  { rows, stride, half }: Pick<DeviceMatrix, 'rows' | 'stride' | 'half'>,
): Promise<GPUBuffer> {
  if (half === undefined) throw new Error('this matrix has no half mirror to round to 8 bits');
  const packed = await gpu.scratch('rows in 8 bits', packedBytes(rows, stride), { passage: true });
  const maxima = await addColumnMaxima(gpu, pass, { rows, rank: stride, half });
  const quads = stride / 4;
  pass.dispatch(
    await gpu.compile(packRowsKernel, {}),
    { half, maxima, packed },
    { rows, quads },
    { threads: Math.max(1, rows) * quads },
  );
  return packed;
}

/** Adds to a pass the kernel that writes rows in 8 bits to a half mirror, from row `rowFrom` on. */
export async function addUnpacked(
  gpu: Gpu,
  pass: Pass,
  { packed, rows }: { readonly packed: GPUBuffer; readonly rows: number },
  { stride, half }: Pick<DeviceMatrix, 'stride' | 'half'>,
  rowFrom: number,
): Promise<void> {
  if (half === undefined) throw new Error('task place-rows: rows in 8 bits need a half mirror');
  const quads = stride / 4;
  pass.dispatch(
    await gpu.compile(unpackRowsKernel, {}),
    { packed, half },
    { rows, quads, first: rowFrom * quads },
    { threads: rows * quads },
  );
}
