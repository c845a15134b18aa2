import { ERROR_RATINGS, squaredErrorKernel } from './squared-error.ts';
import type { GpuTaskHandler } from '../handler.ts';

/**
 * The task `squared-error` (see KernelTasks) on a GPU. Each workgroup writes the float32 sums of
 * ERROR_RATINGS ratings; the host adds these in order in float64. If the column factors have a float16 copy,
 * the kernel reads that.
 */
export const squaredError: GpuTaskHandler<'squared-error'> = async (scope) => {
  const { from, to, mean = 0 } = scope.params;
  const { gpu } = scope;
  const block = scope.block('block');
  const rowFactors = scope.matrix('rowFactors');
  const columnFactors = scope.matrix('columnFactors');
  const [first, last] = [block.offsets[from], block.offsets[to]];
  const values = { squared: 0, absolute: 0, count: last - first };
  if (first === last || scope.cancelled()) return { rows: to - from, values };
  const biased = scope.has('rowBias') && scope.has('columnBias');
  const [rowBias, columnBias] = biased
    ? [scope.vector('rowBias'), scope.vector('columnBias')]
    : [block.values, block.values];
  const kernel = await gpu.compile(squaredErrorKernel, {
    stride: rowFactors.stride,
    biased,
    half: columnFactors.half !== undefined,
  });
  const origin = first - (first % 4);
  const groups = Math.ceil((last - origin) / ERROR_RATINGS);
  // A scratch buffer is used, since creating a buffer would wait for this thread's next turn while the GPU is
  // idle.
  const sums = await gpu.scratch('error sums', 8 * groups);
  const bindings = {
    row_pointers: block.rowPointers,
    indices: block.indices,
    values: block.values,
    row_factors: rowFactors.values,
    column_factors: columnFactors.half ?? columnFactors.values,
    row_bias: rowBias,
    column_bias: columnBias,
    sums,
  };
  const uniforms = { from_row: from, to_row: to, first, last, origin, base: mean };
  const { bytes } = await gpu
    .pass('squared-error')
    .dispatch(kernel, bindings, uniforms, groups)
    .submit({ read: { buffer: sums, bytes: 8 * groups }, submitted: scope.submitted });
  const pairs = new Float32Array(bytes);
  for (let k = 0; k < pairs.length; k += 2) {
    values.squared += pairs[k];
    values.absolute += pairs[k + 1];
  }
  return { rows: to - from, bytesDown: 8 * groups, values };
};
