import { transposedValuesKernel, transposedValuesWorkgroups } from './transposed-values.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { DeviceBlock } from '../device/resources.ts';

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
