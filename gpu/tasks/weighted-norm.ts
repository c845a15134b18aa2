import { NORM_ROWS, weightedNormKernel } from '../kernels/loss/weighted-norm.ts';
import type { GpuTaskHandler } from '../handler.ts';

/** See `weighted-norm` of KernelTasks. Float32 pairs of sums of NORM_ROWS rows each, added up in float64 in their order. */
export const weightedNorm: GpuTaskHandler<'weighted-norm'> = async (scope) => {
  const { from, to, exponent = 1, plainWeights = [1, 1, 1] } = scope.params;
  const [first, second, others] = plainWeights;
  const { gpu } = scope;
  const { stride, values: factors } = scope.matrix('factors');
  const groups = Math.ceil((to - from) / NORM_ROWS);
  if (groups === 0 || scope.cancelled()) return { rows: to - from, values: { sum: 0, plain: 0 } };
  const kernel = await gpu.compile(weightedNormKernel, {});
  const sums = await gpu.buffer(8 * groups, 'weighted norms');
  try {
    const bindings = { offsets: scope.block('block').rowPointers, factors, sums };
    const { bytes } = await gpu.pass('weighted-norm').dispatch(kernel, bindings, { from_row: from, to_row: to, stride, exponent, first, second, others }, groups).submit({ read: { buffer: sums, bytes: 8 * groups }, submitted: scope.submitted });
    const values = { sum: 0, plain: 0 };
    const pairs = new Float32Array(bytes);
    for (let k = 0; k < pairs.length; k += 2) {
      values.sum += pairs[k];
      values.plain += pairs[k + 1];
    }
    return { rows: to - from, bytesDown: 8 * groups, values };
  } finally {
    sums.destroy();
  }
};
