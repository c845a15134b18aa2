import type { DeviceBlock } from '../device/resources.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf } from '../webgpu/kernel.ts';

const THREADS = 256;

/**
 * Finds the values of a block of ratings in its transpose, which is already on the GPU. So of the two blocks
 * that a training needs (ratings by user and by item), the second is uploaded without values, which saves a
 * third of its uploads. `count`: ratings of the block; `rows`: its rows.
 */
export const transposedValuesKernel = kernelOf()({
  name: 'transposed-values',
  reads: {
    row_pointers: 'array<u32>',
    indices: 'array<u32>',
    other_pointers: 'array<u32>',
    other_indices: 'array<u32>',
    other_values: 'array<f32>',
  },
  writes: { values: 'array<f32>' },
  uniforms: {
    count: 'u32',
    rows: 'u32',
  },
  values: () => ({ THREADS }),
});

/** Workgroups for a number of ratings. */
export function transposedValuesWorkgroups(count: number): number {
  return Math.ceil(count / THREADS);
}

/**
 * Creates the buffer for the values of a block of ratings, and fills it from `other`, the block's transpose.
 * Returns without waiting for the kernel: `filled` resolves at its end, and work that is submitted later sees
 * the values.
 */
export async function transposedValues(
  gpu: Gpu,
  { rows, ratings, rowPointers, indices }: Pick<DeviceBlock, 'rows' | 'ratings' | 'rowPointers' | 'indices'>,
  other: DeviceBlock,
  label: string,
): Promise<{ readonly values: GPUBuffer; readonly filled: Promise<unknown> }> {
  const values = await gpu.buffer(4 * ratings, label);
  const bindings = {
    row_pointers: rowPointers,
    indices,
    other_pointers: other.rowPointers,
    other_indices: other.indices,
    other_values: other.values,
    values,
  };
  const filled = gpu
    .pass('transposed-values')
    .dispatch(
      await gpu.compile(transposedValuesKernel, {}),
      bindings,
      { count: ratings, rows },
      transposedValuesWorkgroups(ratings),
    )
    .submit();
  // The task `upload` awaits `filled` and reports an error.
  filled.catch(() => undefined);
  return { values, filled };
}
